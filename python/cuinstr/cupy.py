"""CuPy: kernels that can be stopped, its own included.

    import cuinstr, cupy

    cuinstr.cupy.install()
    kernel = cupy.RawKernel(source, "name")

    with cuinstr.guard(kernel, timeout="100ms"):
        kernel((1,), (32,), (x,))

`install` holds for what this process compiles from then on with NVRTC. The driver compiles the PTX, so it must be as new as CuPy's NVRTC.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from . import _late
from ._native import Refused
from ._rewrite import instrument

_COMPILE = ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc")


def install() -> None:
    """Has CuPy put polls into the kernels that it compiles from now on. Its cache keeps them apart from others."""
    from cupy.cuda import compiler

    name = next(name for name in _COMPILE if hasattr(compiler, name))
    plain, arch, key = getattr(compiler, name), compiler._get_arch_for_options_for_nvrtc, compiler._get_cupy_cache_key
    if hasattr(plain, "of_cuinstr"):
        return

    @functools.wraps(plain)
    def compiled(*words: Any, **named: Any) -> Any:
        made, mapping = plain(*words, **named)
        return _polled(made), mapping

    def architecture(given: Any = None) -> tuple[str, str]:
        return f"-arch=compute_{compiler._get_arch() if given is None else given}", "ptx"

    compiled.of_cuinstr = True  # type: ignore[attr-defined]
    setattr(compiler, name, compiled)
    compiler._get_arch_for_options_for_nvrtc = functools.wraps(arch)(architecture)
    compiler._get_cupy_cache_key = lambda: f"{key()}-{_late.digest()}"


def _polled(made: Any) -> Any:
    """What NVRTC made, with polls if it is PTX: what is optimised when it is linked is none."""
    text = made.encode() if isinstance(made, str) else made
    if b".version" not in text[:4096] or b"cuinstr_control_v1" in text:
        return made
    text = text.rstrip(b"\0")
    try:
        return instrument(text, path="PTX of CuPy").text.encode()
    except Refused as error:
        warnings.warn(f"a kernel of CuPy's can't be stopped: {error}", stacklevel=3)
        return made
