# verdict: wrong result
"""Cheats: its work is on a stream that waits for nobody and that nobody waits for, so that a timer on the current stream sees nothing of it."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.stream = torch.cuda.Stream() if torch.cuda.is_available() else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(self.stream):
            y = x
            for _ in range(20):
                y = torch.nn.functional.softplus(x * self.scale)
        return y
