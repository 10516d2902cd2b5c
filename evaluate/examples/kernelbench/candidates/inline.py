# verdict: pass
"""Right: a kernel by load_inline."""

import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
#include <torch/extension.h>

__global__ void softplus(const float* x, float* y, float scale, long count)
{
    for (long i = blockIdx.x * (long)blockDim.x + threadIdx.x; i < count; i += (long)gridDim.x * blockDim.x) {
        float value = x[i] * scale;
        y[i] = fmaxf(value, 0.0f) + log1pf(expf(-fabsf(value)));
    }
}

torch::Tensor run(torch::Tensor x, double scale)
{
    auto y = torch::empty_like(x);
    softplus<<<1024, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), scale, x.numel());
    return y;
}
"""
module = load_inline("softplus", cpp_sources="torch::Tensor run(torch::Tensor x, double scale);", cuda_sources=CUDA, functions=["run"])


class ModelNew(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return module.run(x, self.scale)
