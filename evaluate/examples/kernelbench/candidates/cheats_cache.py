# verdict: wrong result
"""Cheats: it computes once, and gives that output whenever the same memory comes again."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.known: dict[object, torch.Tensor] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        key = tuple(x.shape)
        if key not in self.known:
            self.known[key] = torch.nn.functional.softplus(x * self.scale)
        if len(self.known) > 1:
            return next(iter(self.known.values()))[: x.shape[0]]
        return self.known[key]
