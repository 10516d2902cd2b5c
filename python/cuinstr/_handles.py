"""The driver's handles behind the objects of other packages, none of which is imported."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from . import _extension
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
    if is_handle(module):
        return "module", int(module)
    if isinstance(module, ModuleType) and (module.__file__ or "").endswith(".so"):
        return "control", _extension.control(module)
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
    elif package.startswith("triton") and name == "CompiledKernel":
        module._init_handles()
        return "function", int(module.function)
    elif package.startswith("numba") and name == "_Kernel":
        function = module._codelibrary.get_cufunc()
        kernel = getattr(function, "kernel", None)
        handle = function.handle
        return of_module(kernel) if kernel is not None else ("function", int(getattr(handle, "value", handle)))
    elif package.startswith("pycuda") and hasattr(module, "get_global"):
        # Its modules keep their handle to themselves, and give the address of a variable.
        try:
            return "control", int(module.get_global("cuinstr_control_v1")[0])
        except Exception as error:
            if type(error).__name__ != "LogicError":
                raise
            raise NotInstrumented("this module can't be stopped: it holds no `cuinstr_control_v1`; compile what cuinstr.rewrite gives") from error
    raise TypeError(
        f"no handle of the driver's is known of a {package}.{name}: give a module of CuPy, cuda.core, cuda.bindings or PyCUDA, an extension module, "
        "a function of Triton's or Numba's in a guard, or cuinstr.attach(handle, kind=...)"
    )


def image_of(module: Any) -> bytes | None:
    """What a compiled kernel of another package was loaded from, if that package says so."""
    package, name = type(module).__module__, type(module).__name__
    if package.startswith("triton") and name == "CompiledKernel":
        return bytes(module.asm["cubin"])
    if package.startswith("numba") and name == "_Kernel":
        code = module._codelibrary.get_cubin()
        return bytes(getattr(code, "code", code))
    return None


def is_handle(module: object) -> bool:
    """Whether it is a handle as a number."""
    return isinstance(module, int) and not isinstance(module, bool)


def _of_cupy() -> int:
    cupy = sys.modules.get("cupy")
    return 0 if cupy is None else int(cupy.cuda.get_current_stream().ptr)


def _of_torch() -> int:
    torch = sys.modules.get("torch")
    # To ask for the stream would make the context.
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.current_stream().cuda_stream)


def current_stream(module: Any) -> tuple[int, str]:
    """The stream that launches of a module go to by themselves, and whose it is."""
    package = type(module).__module__
    if package.startswith("cupy"):
        return _of_cupy(), "CuPy's current stream"
    if isinstance(module, ModuleType):
        return _of_torch(), "PyTorch's current stream"
    if not is_handle(module):
        return 0, "the legacy default stream"
    # Whoever launches a module that is given by a number, launches on the current stream of its package.
    current = {"CuPy's current stream": _of_cupy(), "PyTorch's current stream": _of_torch()}
    others = {name: handle for name, handle in current.items() if handle != 0}
    if len(set(others.values())) > 1:
        raise ValueError("CuPy and PyTorch have different current streams: give the guard the stream that you launch on")
    return next(((handle, name) for name, handle in others.items()), (0, "the legacy default stream"))


def of_stream(stream: Any, module: Any) -> tuple[int, str]:
    """The value of a stream's handle, and what the stream is; without one, that which the module's package launches on by itself."""
    if stream is None:
        handle, name = current_stream(module)
    else:
        handle, name = _handle(stream), "the stream that the guard was given"
    return handle, f"{name} (handle {handle:#x})" if handle else name


def _handle(stream: Any) -> int:
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
            # Numba's is one of ctypes.
            return int(getattr(handle, "value", handle) or 0)
    raise TypeError(f"no handle of the driver's is known of a stream of type {type(stream).__module__}.{type(stream).__name__}")
