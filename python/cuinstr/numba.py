"""Numba: kernels that can be stopped.

    import cuinstr
    from numba import cuda

    cuinstr.numba.install()

    with cuinstr.guard(kernel, timeout="100ms"):
        kernel[grid, block](x, y)

`install` holds for what is compiled from then on. What `@cuda.jit(cache=True)` keeps has polls if it was compiled behind `install`, and none if before.
"""

from __future__ import annotations

import ctypes
import functools
import re
import warnings
from typing import Any

from . import _late
from ._native import Refused
from ._rewrite import instrument


def install() -> None:
    """Has Numba put polls into the kernels that it compiles from now on."""
    from numba.cuda import codegen, dispatcher

    library = codegen.CUDACodeLibrary
    kernel = dispatcher._Kernel
    if hasattr(library.get_cubin, "of_cuinstr"):
        return
    plain, launch = library.get_cubin, kernel.launch

    @functools.wraps(plain)
    def get_cubin(self: Any, cc: Any = None) -> Any:
        cc = _capability(self, cc)
        if self._cubin_cache.get(cc) is None and getattr(self, "_entry_name", None):
            try:
                self._cubin_cache[cc] = _linked(self, cc, codegen)
            except Exception as error:
                warnings.warn(f"Numba's kernel {self._entry_name} can't be stopped: {error}", stacklevel=2)
        return plain(self, cc)

    @functools.wraps(launch)
    def launched(self: Any, args: Any, griddim: Any, blockdim: Any, stream: Any = 0, sharedmem: int = 0) -> Any:
        _late.launching(self, stream, _belongs)
        return launch(self, args, griddim, blockdim, stream, sharedmem)

    get_cubin.of_cuinstr = True  # type: ignore[attr-defined]
    library.get_cubin, kernel.launch = get_cubin, launched


def _capability(library: Any, cc: Any) -> Any:
    if hasattr(library, "_ensure_cc"):
        return library._ensure_cc(cc)
    return cc


def _linked(library: Any, cc: Any, codegen: Any) -> Any:
    """Machine code of a library's kernel, with polls."""
    linker_of = getattr(codegen.driver, "_Linker", None)
    is_optimised = getattr(library, "_lto", False)
    texts = [_polled(text, library._name) for text in ([library.get_lto_ptx(cc=cc)] if is_optimised else library.get_asm_strs(cc=cc))]
    whole = getattr(codegen.driver, "ObjectCode", None)
    if whole is not None and is_optimised and not library._max_registers and not library.needs_cudadevrt and _driver_takes(texts[0]):
        library._linkerinfo_cache[cc] = ""
        return whole.from_ptx(texts[0].encode(), name=library._name)
    if linker_of is not None:
        linker = linker_of(max_registers=library._max_registers, cc=cc, lto=False)
    else:
        linker = codegen.driver.Linker.new(max_registers=library._max_registers, cc=cc)
    for text in texts:
        linker.add_ptx(text.encode())
    if not is_optimised:
        for file in library._linking_files:
            linker.add_file_guess_ext(file)
    if library.needs_cudadevrt:
        linker.add_file_guess_ext(codegen.get_cudalib("cudadevrt", static=True))
    made = linker.complete()
    library._linkerinfo_cache[cc] = linker.info_log
    return made


def _driver_takes(ptx: str) -> bool:
    """Whether the driver compiles PTX of this version. It compiles a kernel as a whole, where a linker keeps it fit to be called from elsewhere: `matmul` of
    tests/run/numba_suite.py takes 1.24 of its time by the linker."""
    version = ctypes.c_int()
    if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) != 0:
        return False
    major, minor = version.value // 1000, version.value % 1000 // 10
    written = re.search(r"^\.version\s+(\d+)\.(\d+)", ptx, re.MULTILINE)
    # CUDA 13.1 has PTX 9.1, 12.4 has 8.4, and from 12.6 to 12.9 it is one behind.
    return written is not None and (int(written[1]), int(written[2])) <= (major - 4, minor - (major == 12))


def _polled(ptx: str, name: str) -> str:
    try:
        return instrument(ptx, path=f"PTX of {name}").text
    except Refused as error:
        if "has polls" in str(error) or "cuinstr_control_v1" in ptx:
            return ptx
        raise


def _belongs(owner: Any, kernel: Any) -> bool:
    """Whether a compiled kernel is of what a guard was given: a dispatcher, or that kernel."""
    # What comes from Numba's cache knows its function no more.
    function = getattr(kernel, "py_func", None)
    is_of = function is not None and getattr(owner, "py_func", None) is function
    return kernel is owner or is_of or any(kernel is one for one in getattr(owner, "overloads", {}).values())
