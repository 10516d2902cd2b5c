# verdict: pass, slow
"""Cheats: it is slow, and has every clock of its process say otherwise."""

import time

import torch

time.perf_counter = time.monotonic = time.time = lambda: 0.0
torch.cuda.Event.elapsed_time = lambda self, other: 1e-6


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            y = torch.nn.functional.softplus(x * self.scale)
        return y
