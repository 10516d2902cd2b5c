# verdict: wrong result
"""Wrong: it forgets the scale."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(x)
