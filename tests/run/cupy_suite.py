"""CuPy's RawModules of kernels/bench, by NVRTC, plain and with polls: `python cupy_suite.py ROWS SECONDS` (see overhead.py)."""
from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import cupy
import numpy as np
from overhead import Case, Form, run

import cuinstr

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "ptx_forms"))

from device import FILLS, TYPES, bits  # noqa: E402

# A few of each kind: scripts/ptx-forms times all of them as NVRTC's PTX.
NAMES = "collatz convolve2d gemm_tiled hash_probe mandelbrot nbody ray_march reduce_shuffle stencil3d".split()
NUMPY = {"u8": "u1", "i32": "i4", "u32": "u4", "f32": "f4", "i64": "i8", "u64": "u8", "f64": "f8", "bf16": "u2"}
OPTIONS = ("-std=c++17",)
FUNCTIONS = ("_compile_using_nvrtc_no_warning", "compile_using_nvrtc", "_get_arch_for_options_for_nvrtc", "_get_cupy_cache_key")


class Compiler:
    """CuPy as it is, CuPy by way of PTX, and that with polls. The driver compiles PTX, and NVRTC what is plain."""

    def __init__(self) -> None:
        from cupy.cuda import compiler

        self.module = compiler
        self.names = [name for name in FUNCTIONS if hasattr(compiler, name)]
        self.plain = {name: getattr(compiler, name) for name in self.names}
        cuinstr.cupy.install()
        self.polls = {name: getattr(compiler, name) for name in self.names}
        self.use("plain")

    def use(self, form: str) -> None:
        chosen = {"plain": self.plain, "polls": self.polls, "ptx": self.plain | {FUNCTIONS[2]: self.polls[FUNCTIONS[2]]}}[form]
        for name in self.names:
            setattr(self.module, name, chosen[name])


def buffers_of(source: str, support: Any) -> tuple[list[Any], list[tuple[Any, Any]]]:
    """A kernel's arguments as its `//@ arg` lines say, and its buffers beside what is first in them."""
    arguments: list[Any] = []
    buffers = []
    for argument in re.findall(r"//@ arg: (.*)", source):
        scalar = re.match(r"(\w+) (\S+)$", argument)
        if scalar:
            type_, text = scalar.groups()
            arguments.append(np.array([bits(type_, text)], dtype="<u8").view(NUMPY[type_])[0])
            continue
        match = re.match(r"(\w+)\[(\d+)\] (\w+) ?(.*)", argument)
        if match is None:
            raise ValueError(f"no fill for `{argument}`")
        type_, count, how, rest = match.groups()
        numbers = rest.replace("sorted", "").split()
        numbers = numbers[1:] if how == "csr" else numbers
        words = [bits(type_, numbers[0])] if how == "const" else [int(text) for text in numbers]
        pristine = cupy.zeros(int(count), dtype=NUMPY[type_])
        order = FILLS.index("zero" if how == "table" else how)
        given = (pristine, np.uint64(int(count)), np.int32(TYPES[type_][0]), np.int32(order), *(np.uint64(word) for word in (words + [0, 0, 0])[:3]))
        support.get_function("fill")((1024,), (256,), given)
        if how == "table":
            support.get_function("table")((1024,), (256,), (pristine, np.uint64(int(count)), np.uint64(words[0])))
        buffers.append((pristine.copy(), pristine))
        arguments.append(buffers[-1][0])
    return arguments, buffers


def case_of(name: str, compiler: Compiler) -> Case:
    source = (ROOT / "kernels" / "bench" / f"{name}.cu").read_text()
    support = cupy.RawModule(code=(ROOT / "tests/ptx_forms/support.cu").read_text(), options=OPTIONS)
    arguments, buffers = buffers_of(source, support)

    def extent(key: str) -> tuple[int, ...]:
        found = re.search(rf"^//@ {key}: (.*)", source, re.M)
        return tuple(int(word) for word in found[1].split()) if found else (1,)

    found = re.search(r"^//@ entry: (\S+)", source, re.M)
    entry = found[1] if found else name
    forms = {}
    for form in ("plain", "ptx", "polls"):
        compiler.use(form)
        # Equal sources would be one module.
        module = cupy.RawModule(code=f"// {form}\n{source}", options=OPTIONS, name_expressions=[entry])
        kernel = module.get_function(entry)
        words = (extent("grid"), extent("block"), arguments)
        kwargs = {"shared_mem": extent("shared")[0]} if "//@ shared:" in source else {}
        attached = cuinstr.attach(module) if form == "polls" else None
        forms[form] = Form(lambda kernel=kernel: kernel(words[0], words[1], tuple(words[2]), **kwargs), attached)
    compiler.use("plain")

    def reset() -> None:
        for buffer, pristine in buffers:
            buffer[...] = pristine

    return Case(forms, reset, lambda: [buffer.get() for buffer, _ in buffers])


if __name__ == "__main__":
    COMPILER = Compiler()
    run({name: lambda name=name: case_of(name, COMPILER) for name in NAMES}, sys.argv[1:])
