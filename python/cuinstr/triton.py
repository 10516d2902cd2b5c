"""Triton: kernels that can be stopped.

    import cuinstr, triton

    cuinstr.triton.install()

    with cuinstr.guard(kernel, timeout="100ms"):
        kernel[grid](x, y)

`install` holds for what this process compiles from then on. Programs under `cuinstr run` need none of it.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from . import _late
from ._native import Failure, Refused
from ._rewrite import instrument


def install() -> None:
    """Has Triton put polls into the kernels that it compiles from now on. Its cache keeps them apart from others."""
    from triton.backends.nvidia.compiler import CUDABackend

    make, number = CUDABackend.make_cubin, CUDABackend.hash
    if hasattr(make, "of_cuinstr"):
        return

    @functools.wraps(make)
    def make_cubin(self: Any, src: str, metadata: Any, *rest: Any) -> bytes:
        result: bytes = make(self, _polled(src, str(metadata.get("name", "kernel"))), metadata, *rest)
        return result

    @functools.wraps(number)
    def numbered(self: Any) -> str:
        return f"{number(self)}-{_late.digest()}"

    make_cubin.of_cuinstr = True  # type: ignore[attr-defined]
    CUDABackend.make_cubin, CUDABackend.hash = make_cubin, numbered


def _polled(ptx: str, name: str) -> str:
    if "cuinstr_control_v1" in ptx:
        return ptx
    try:
        return instrument(ptx, path=f"PTX of {name}").text
    except Refused as error:
        warnings.warn(f"Triton's kernel {name} can't be stopped: {error}", stacklevel=3)
        return ptx


def _compiled(owner: Any) -> list[Any]:
    """The kernels that were made of a function so far."""
    if type(owner).__name__ == "CompiledKernel":
        return [owner]
    while type(owner).__name__ != "JITFunction":
        # What autotunes, and heuristics, hold a function each.
        owner = owner.fn
    return [kernel for caches in list(owner.device_caches.values()) for kernel in list(caches[0].values())]


def _announce(metadata: Any) -> None:
    """Triton's own hook: a kernel is about to be launched."""
    launch = metadata.data
    for guard in _late.waiting():
        if not _late.is_late(guard.owner) or not type(guard.owner).__module__.startswith("triton"):
            continue
        for kernel in _compiled(guard.owner):
            if getattr(kernel, "function", None) == launch["function"]:
                guard.arm(kernel, launch["stream"])
                break


def listen() -> None:
    """Hears of each launch from now on, as long as a guard waits for one."""
    from triton import knobs

    hook = knobs.runtime.launch_enter_hook
    if not hasattr(hook, "add"):
        raise Failure("this Triton can't tell of its launches: guards of its functions take Triton 3.5 or later")
    hook.add(_announce)


def forget() -> None:
    """Hears of none."""
    from triton import knobs

    knobs.runtime.launch_enter_hook.remove(_announce)
