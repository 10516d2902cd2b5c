"""The driver's handles behind the objects of other packages, none of which is imported."""

from __future__ import annotations

import sys
from typing import Any

from ._native import NotInstrumented

# What cuda.bindings calls its handles, of the driver and of the runtime.
_BINDINGS = {
    "CUmodule": "module",
    "CUlibrary": "library",
    "cudaLibrary_t": "library",
    "CUfunction": "function",
    "cudaFunction_t": "function",
    "CUkernel": "kernel",
    "cudaKernel_t": "kernel",
}


def of_module(module: Any) -> tuple[str, int]:
    """Kind and value of a handle that leads to the module."""
    if isinstance(module, int) and not isinstance(module, bool):
        return "module", module
    kind = type(module)
    package, name = kind.__module__, kind.__name__
    if package.startswith("cupy"):
        # Both compile when first asked, on the current device.
        if name == "RawModule":
            return "module", int(module.module.ptr)
        if name == "RawKernel":
            return "function", int(module.kernel.ptr)
        if name == "Module":
            return "module", int(module.ptr)
        if name == "Function":
            return "function", int(module.ptr)
    elif package.startswith("cuda."):
        if name in _BINDINGS:
            return _BINDINGS[name], int(module)
        if name == "ObjectCode":
            return of_module(module.handle) if type(module.handle).__name__ in _BINDINGS else ("library", int(module.handle))
        if name == "Kernel":
            return of_module(module.handle) if type(module.handle).__name__ in _BINDINGS else ("kernel", int(module.handle))
    elif package.startswith("pycuda") and hasattr(module, "get_global"):
        # Its modules keep their handle to themselves, and give the address of a variable.
        try:
            return "control", int(module.get_global("cuinstr_control_v1")[0])
        except Exception as error:
            if type(error).__name__ != "LogicError":
                raise
            raise NotInstrumented("this module can't be stopped: it holds no `cuinstr_control_v1`; compile what cuinstr.rewrite gives") from error
    raise TypeError(
        f"no handle of the driver's is known of a {package}.{name}: give a module of CuPy, cuda.core, cuda.bindings or PyCUDA, "
        "or cuinstr.attach(handle, kind=...)"
    )


def of_stream(stream: Any, module: Any) -> int:
    """The value of a stream's handle; without one, of the stream that the module's package launches on by itself."""
    if stream is None:
        cupy = sys.modules.get("cupy")
        if cupy is not None and type(module).__module__.startswith("cupy"):
            return int(cupy.cuda.get_current_stream().ptr)
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version_and_handle = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    # PyTorch, CuPy, PyCUDA.
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(handle)
    raise TypeError(f"no handle of the driver's is known of a stream of type {type(stream).__module__}.{type(stream).__name__}")
