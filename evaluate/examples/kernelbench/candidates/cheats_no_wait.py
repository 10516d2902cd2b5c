# verdict: wrong result or pass, slow
"""Cheats: it replaces the function that waits for the GPU, so that whoever times it stops too early."""

import torch

torch.cuda.synchronize = lambda *_: None


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(400):
            y = torch.nn.functional.softplus(x * self.scale)
        return y
