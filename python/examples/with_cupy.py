"""CuPy: a hang is stopped, its line printed, and the next launch in the same context, on the same array, is right."""

import cupy

import cuinstr

SOURCE = r"""
extern "C" __global__ void halve(unsigned* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
}
"""

module = cupy.RawModule(code=cuinstr.rewrite(SOURCE, path="halve.cu").text)
halve = module.get_function("halve")
numbers = cupy.array([7, 1000, 0], dtype=cupy.uint32)  # the zero hangs

try:
    with cuinstr.guard(module, timeout=0.1):
        halve((1,), (32,), (numbers, 3))
except cuinstr.Stopped as stopped:
    print(stopped)
    assert stopped.line == 5

numbers[2] = 4
with cuinstr.guard(module, timeout=0.1) as guard:
    halve((1,), (32,), (numbers, 3))
print(numbers, guard.outcome)
assert numbers.tolist() == [1, 1, 1]
