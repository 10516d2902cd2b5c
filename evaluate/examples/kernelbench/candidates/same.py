# verdict: pass
"""Right: what the reference does, in other words."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale
        return torch.clamp(y, min=0) + torch.log1p(torch.exp(-torch.abs(y)))
