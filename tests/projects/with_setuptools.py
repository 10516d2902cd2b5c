"""An extension as a package's setup.py builds it where there is no ninja: PyTorch then calls bin/nvcc below CUDA_HOME itself. Run with no argument, it builds; with
one, it imports what was built and has a kernel run for ever."""

import sys
import pathlib

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void halve(int* numbers, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    while (numbers[i] != 1) numbers[i] /= 2;  // HALVE
}

void run(torch::Tensor numbers) {
    const int count = numbers.numel();
    halve<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(numbers.data_ptr<int>(), count);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("run", &run); }
"""


def main():
    if len(sys.argv) == 1:
        pathlib.Path("part.cu").write_text(SOURCE)
        extension = CUDAExtension("part", ["part.cu"], extra_compile_args={"cxx": ["-O1"], "nvcc": ["-O2", "-lineinfo"]})
        setup(name="part", ext_modules=[extension], cmdclass={"build_ext": BuildExtension.with_options(use_ninja=False)}, script_args=["build_ext", "--inplace"])
        return
    sys.path.insert(0, ".")
    import part

    numbers = torch.tensor([7, 1000, 1 if sys.argv[1] == "fine" else 0], dtype=torch.int32, device="cuda")
    part.run(numbers)
    torch.cuda.synchronize()
    print(numbers.tolist())


main()
