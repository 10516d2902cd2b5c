"""A reference in KernelBench's form: softplus of a scaled matrix. How many rows it has is drawn each time."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(x * self.scale)


def get_inputs() -> list[torch.Tensor]:
    rows = 1024 + 64 * int(torch.randint(0, 16, ()))
    return [torch.randn(rows, 2048)]


def get_init_inputs() -> list[float]:
    return [1.5]
