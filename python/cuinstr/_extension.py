"""Extension modules that hold kernels, such as PyTorch's: where the control block of their kernels lies."""

from __future__ import annotations

import ctypes
import os
from types import ModuleType

from . import _native
from ._native import Failure, NotInstrumented

_NAME = "cuinstr_control_v1"


def control(module: ModuleType) -> int:
    """The device address of the control block of the kernels in an extension module.

    The host's side of each unit has a variable of the control block's name, by whose address the CUDA runtime knows the one on the device.
    """
    path = module.__file__
    assert path is not None
    entry = f"PyInit_{module.__name__.rpartition('.')[2]}"
    symbols = _native.symbols(path, [_NAME, entry])
    variables = sorted({value for name, value in symbols if name != entry})
    entries = [value for name, value in symbols if name == entry]
    if not variables or not entries:
        raise NotInstrumented(
            f"{path} can't be stopped: it has no symbol {_NAME}. Compile it with PYTORCH_NVCC=\"cuinstr nvcc\", or from what cuinstr.rewrite gives, "
            "and keep its symbols"
        )
    if len(variables) > 1:
        raise Failure(
            f"{path} has {len(variables)} units with kernels, and a guard is for one: compile with -rdc=true, or give cuinstr.attach a kernel's "
            'function (kind="function")'
        )
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    base = ctypes.cast(getattr(library, entry), ctypes.c_void_p).value or 0
    # The runtime that the extension is linked with knows its variables.
    lookup = getattr(library, "cudaGetSymbolAddress", None)
    if lookup is None:
        raise Failure(f"{path} holds a CUDA runtime of its own: give cuinstr.attach the address of {_NAME} (cudaGetSymbolAddress in that source)")
    address = ctypes.c_void_p()
    failed = lookup(ctypes.byref(address), ctypes.c_void_p(base - entries[0] + variables[0]))
    if failed or not address.value:
        raise Failure(f"the CUDA runtime knows no {_NAME} of {path}: error {failed} of cudaGetSymbolAddress")
    return address.value
