"""Stops CUDA kernels that do not end, and keeps the context.

Rewrite the source, compile and launch it by the means you have, and put a guard around the launch:

    import cupy, cuinstr

    source = cuinstr.rewrite(r'''
    extern "C" __global__ void halve(unsigned* numbers, int count) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < count) while (numbers[i] != 1) numbers[i] /= 2;
    }
    ''')
    module = cupy.RawModule(code=source.text)
    halve = module.get_function("halve")
    numbers = cupy.array([7, 1000, 0], dtype=cupy.uint32)
    try:
        with cuinstr.guard(module, timeout=0.1):
            halve((1,), (32,), (numbers, 3))
    except cuinstr.Stopped as stopped:
        print(stopped)               # the loop, its line, how many threads were where
    print(numbers)                   # and the context lives

Modules of CuPy, cuda.core, cuda.bindings and PyCUDA are known by themselves; any other by a handle of the driver's, see `attach`. Nothing of any
framework is imported. While a guard waits, other threads run, and Ctrl-C cancels the kernel.
"""

from . import cupy, numba, triton
from ._guard import Faulted, Guard, Module, Part, Stopped, attach, guard
from ._native import (
    Failure,
    Mutant,
    NotBegun,
    NotInstrumented,
    NotLaunched,
    Outcome,
    Poisoned,
    Refused,
    Rewritten,
    Undrained,
    WrongContext,
    __version__,
)
from ._pool import In, InOut, Out, Pool, Result, Task
from ._rewrite import Proof, instrument, mutants, rewrite, verify

__all__ = [
    "Failure",
    "Faulted",
    "Guard",
    "In",
    "InOut",
    "Module",
    "Mutant",
    "NotBegun",
    "NotInstrumented",
    "NotLaunched",
    "Out",
    "Outcome",
    "Part",
    "Poisoned",
    "Pool",
    "Proof",
    "Refused",
    "Result",
    "Rewritten",
    "Stopped",
    "Task",
    "Undrained",
    "WrongContext",
    "__version__",
    "attach",
    "cupy",
    "guard",
    "instrument",
    "mutants",
    "numba",
    "rewrite",
    "triton",
    "verify",
]
