"""PyCUDA: a hang is stopped, its line printed, and the next launch in the same context, on the same array, is right."""

import numpy
import pycuda.autoinit  # noqa: F401
from pycuda import gpuarray
from pycuda.compiler import SourceModule

import cuinstr

SOURCE = r"""
extern "C" __global__ void halve(unsigned* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
}
"""

module = SourceModule(cuinstr.rewrite(SOURCE, path="halve.cu").text, no_extern_c=True)
halve = module.get_function("halve")
numbers = gpuarray.to_gpu(numpy.array([7, 1000, 0], dtype=numpy.uint32))  # the zero hangs

try:
    with cuinstr.guard(module, timeout=0.1):
        halve(numbers, numpy.int32(3), grid=(1, 1), block=(32, 1, 1))
except cuinstr.Stopped as stopped:
    print(stopped)
    assert stopped.line == 5

numbers[2] = numpy.uint32(4)
with cuinstr.guard(module, timeout=0.1) as guard:
    halve(numbers, numpy.int32(3), grid=(1, 1), block=(32, 1, 1))
assert numbers.get().tolist() == [1, 1, 1]
