"""The compilers that make PTX of a kernel's source."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import re
import shutil
import tempfile

from assemble import call, tool

COMPILERS = ("nvcc", "clang", "nvrtc")


def to_ptx(compiler: str, source: pathlib.Path, out: pathlib.Path) -> None:
    if compiler == "nvcc":
        call(tool("nvcc"), "-arch=sm_90", "-O3", "-std=c++17", "-ptx", str(source), "-o", str(out))
    elif compiler == "clang":
        with_clang(source, out)
    else:
        out.write_text(with_nvrtc(source))


def toolkit() -> pathlib.Path:
    return pathlib.Path(shutil.which(tool("nvcc")) or tool("nvcc")).parent.parent


def with_clang(source: pathlib.Path, out: pathlib.Path) -> None:
    program = next((name for name in ("clang", *(f"clang-{version}" for version in range(25, 15, -1))) if shutil.which(name)), None)
    if program is None:
        raise RuntimeError("no clang: install one, such as the package clang-19")
    with tempfile.TemporaryDirectory() as folder:
        # Clang's own header includes these, and newer toolkits have them no more.
        for name in ("texture_fetch_functions.h", "curand_mtgp32_kernel.h"):
            (pathlib.Path(folder) / name).touch()
        options = ["-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", f"--cuda-path={toolkit()}", "-Wno-unknown-cuda-version", "-std=c++17", "-O3"]
        call(program, *options, "-idirafter", folder, "-S", str(source), "-o", str(out))
    # Up to some version its header hands mask and value on the wrong way round (llvm/llvm-project issue 131415), and kernels end with error 715.
    header = pathlib.Path(call(program, "--print-resource-dir").strip()) / "include/__clang_cuda_intrinsics.h"
    if "__nvvm_redux_sync_add(__mask, __value)" in header.read_text():
        out.write_text(re.sub(r"(redux\.sync\.\S+ %r\d+, )(%r\d+), (%r\d+);", r"\1\3, \2;", out.read_text()))


@functools.cache
def nvrtc() -> ctypes.CDLL:
    for folder in ("lib64", "lib", "targets/x86_64-linux/lib"):
        found = [path for path in sorted((toolkit() / folder).glob("libnvrtc.so.*")) if "alt" not in path.name]
        if found:
            # It looks for these by name only.
            for builtins in (toolkit() / folder).glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins))
            return ctypes.CDLL(str(found[0]))
    raise RuntimeError(f"no libnvrtc beside {tool('nvcc')}")


def with_nvrtc(source: pathlib.Path) -> str:
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    words = ["--gpu-architecture=compute_90", "--std=c++17", f"--include-path={toolkit() / 'include'}", f"--include-path={toolkit() / 'include/cccl'}"]
    # It has no headers of a C library.
    text = source.read_text().replace("#include <cmath>", "#define INFINITY __int_as_float(0x7f800000)")
    options = (ctypes.c_char_p * len(words))(*[word.encode() for word in words])
    if library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), source.name.encode(), 0, None, None) != 0:
        raise RuntimeError("nvrtcCreateProgram failed")
    if library.nvrtcCompileProgram(program, len(words), options) != 0:
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"{source.name}: {log.value.decode()[:400]}")
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()
