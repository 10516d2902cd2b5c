"""PyTorch: a hang in an inline extension is stopped, and the next launch in the same context, on the same tensor, is right."""

import torch
from torch.utils.cpp_extension import load_inline

import cuinstr

SOURCE = r"""
#include <cuda_runtime.h>
__global__ void halve(int* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
}
void launch(long numbers, long count, long stream) { halve<<<1, 32, 0, (cudaStream_t)stream>>>((int*)numbers, count); }
"""
# Where the extension's control block lies. It goes behind the rewritten source, whose names it uses.
CONTROL = "long control() { void* at = nullptr; cudaGetSymbolAddress(&at, cuinstr_control_v1); return (long)at; }"
INTERFACE = "#include <torch/extension.h>\nvoid launch(long numbers, long count, long stream); long control();"

source = cuinstr.rewrite(SOURCE, path="halve.cu").text + CONTROL
extension = load_inline("halve", INTERFACE, source, functions=["launch", "control"], no_implicit_headers=True)
numbers = torch.tensor([7, 1000, 0], dtype=torch.int32, device="cuda")  # the zero hangs
stream = torch.cuda.current_stream()
module = cuinstr.attach(extension.control(), kind="control")

for expected in ("stopped", "completed"):
    with cuinstr.guard(module, stream, timeout=0.1, raises=False) as guard:
        extension.launch(numbers.data_ptr(), len(numbers), stream.cuda_stream)
    print(guard.outcome)
    assert guard.outcome is not None and guard.outcome.kind == expected
    numbers[2] = 4
assert numbers.tolist() == [1, 1, 4]
