# verdict: fault
"""Faults: it stores far beside its memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def beside(y, far):
    tl.store(y + far, 1.0)


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        beside[(1,)](y, 1 << 40)
        return y
