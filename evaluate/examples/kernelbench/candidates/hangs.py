# verdict: timeout
"""Endless: a loop of Triton's that no value ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def endless(y, limit):
    at = tl.load(y)
    while at < limit:
        at = tl.load(y, volatile=True)
    tl.store(y, at)


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros_like(x)
        endless[(1,)](y, 1.0)
        return y
