"""cuda.core: a hang is stopped, its line printed, and the next launch in the same context, on the same memory, is right."""

import cupy
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

import cuinstr

SOURCE = r"""
extern "C" __global__ void halve(unsigned* numbers, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
}
"""

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
code = Program(cuinstr.rewrite(SOURCE, path="halve.cu").text, code_type="c++", options=options).compile("cubin")
halve = code.get_kernel("halve")
config = LaunchConfig(grid=1, block=32)
numbers = cupy.array([7, 1000, 0], dtype=cupy.uint32)  # the zero hangs
device.sync()

with cuinstr.guard(code, stream, timeout=0.1, raises=False) as guard:
    launch(stream, config, halve, numbers.data.ptr, cupy.int32(3))
print(guard.outcome)
assert guard.outcome is not None and guard.outcome.line == 5

numbers[2] = 4
device.sync()
with cuinstr.guard(code, stream, timeout=0.1):
    launch(stream, config, halve, numbers.data.ptr, cupy.int32(3))
assert numbers.tolist() == [1, 1, 1]
