"""Triton's kernels, plain and with polls: `python triton_suite.py ROWS SECONDS [PART PARTS]` (see overhead.py)."""
from __future__ import annotations

import importlib.util
import pathlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
import triton
from overhead import Case, Form, run

import cuinstr

SOURCE = pathlib.Path(__file__).with_name("triton_suite_kernels.py")


def loaded(name: str) -> Any:
    """The kernels as functions of their own, which share nothing that was compiled."""
    spec = importlib.util.spec_from_file_location(name, SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Compiler:
    """Has Triton put polls into what it compiles, or not."""

    def __init__(self) -> None:
        from triton.backends.nvidia.compiler import CUDABackend

        self.owner, self.names = CUDABackend, ("make_cubin", "hash")
        self.plain = [getattr(CUDABackend, name) for name in self.names]
        cuinstr.triton.install()
        self.polls = [getattr(CUDABackend, name) for name in self.names]
        self.use(False)

    def use(self, has_polls: bool) -> None:
        for name, function in zip(self.names, self.polls if has_polls else self.plain):
            setattr(self.owner, name, function)


COMPILER = Compiler()
KERNELS = {"plain": loaded("kernels_plain"), "polls": loaded("kernels_polls")}
CASES: dict[str, Callable[[], Case]] = {}
SMS = 132


def case(name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """What it decorates gives a launch of one of the two modules of kernels, and the outputs."""

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        CASES[name] = lambda: case_of(make)
        return make

    return register


def case_of(make: Callable[[], Any]) -> Case:
    torch.manual_seed(0)
    launch, outputs, *more = make()
    forms = {}
    for form, kernels in KERNELS.items():
        COMPILER.use(form == "polls")
        compiled = launch(kernels)
        torch.cuda.synchronize()
        attached = cuinstr.attach(int(compiled.module), kind="module", image=compiled.asm["cubin"]) if form == "polls" else None
        forms[form] = Form(lambda kernels=kernels: launch(kernels), attached)
    COMPILER.use(False)

    def reset() -> None:
        for tensor in [*outputs, *more]:
            tensor.view(torch.uint8).zero_()

    def on_host() -> Iterable[Any]:
        return [tensor.view(torch.uint8).cpu().numpy() for tensor in outputs]

    return Case(forms, reset, on_host)


def normal(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.randn(shape, device="cuda", dtype=torch.float32).to(dtype)


def room(*shape: int, dtype: Any = torch.float16) -> Any:
    return torch.zeros(shape, device="cuda", dtype=dtype)


def elementwise(kernel: str, sources: int, **options: Any) -> Any:
    n = 1 << 26
    inputs, out = [torch.rand(n, device="cuda") for _ in range(sources)], room(n, dtype=torch.float32)
    return lambda kernels: getattr(kernels, kernel)[(triton.cdiv(n, 1024),)](*inputs, out, n, BLOCK=1024, **options), [out]


case("vector add")(lambda: elementwise("add", 2))
case("asin of libdevice")(lambda: elementwise("asin", 1))
case("vector add, dependent launches")(lambda: elementwise("add_in_turn", 2, launch_pdl=True))


@case("low-memory dropout")
def dropout() -> Any:
    n = 1 << 26
    x, out = normal(n, dtype=torch.float32), room(n, dtype=torch.float32)
    return lambda kernels: kernels.dropout[(triton.cdiv(n, 1024),)](x, out, n, 0.5, 123, BLOCK=1024), [out]


def softmax(columns: int, block: int, warps: int, stages: int) -> Any:
    rows = (1 << 25) // columns
    x, out = normal(rows, columns, dtype=torch.float32), room(rows, columns, dtype=torch.float32)
    return lambda kernels: kernels.softmax[(8 * SMS,)](out, x, rows, columns, BLOCK=block, STAGES=stages, num_warps=warps), [out]


case("fused softmax, 781 columns")(lambda: softmax(781, 1024, 8, 4))
case("fused softmax, 8192 columns")(lambda: softmax(8192, 8192, 16, 2))


def matmul(dtype: Any, bm: int, bn: int, bk: int, warps: int, stages: int, size: int = 4096, act: bool = False) -> Any:
    a, b = normal(size, size, dtype=dtype), normal(size, size, dtype=dtype)
    c = room(size, size, dtype=torch.float32 if dtype == torch.float32 else torch.float16)
    grid = (triton.cdiv(size, bm) * triton.cdiv(size, bn),)
    # What has eight bits is multiplied with its second matrix transposed.
    strides = (1, size) if dtype == torch.float8_e4m3fn else (size, 1)

    def launch(kernels: Any) -> Any:
        options = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "LEAKY": act, "num_warps": warps, "num_stages": stages}
        return kernels.matmul[grid](a, b, c, size, size, size, size, 1, *strides, size, 1, **options)

    return launch, [c]


case("matmul fp16, 128 x 256 x 64")(lambda: matmul(torch.float16, 128, 256, 64, 8, 3))
case("matmul fp16, 64 x 64 x 32")(lambda: matmul(torch.float16, 64, 64, 32, 4, 4))
case("matmul fp16, 32 x 64 x 32, leaky")(lambda: matmul(torch.float16, 32, 64, 32, 2, 5, 2048, True))
case("matmul bf16, 128 x 128 x 64")(lambda: matmul(torch.bfloat16, 128, 128, 64, 4, 4))
case("matmul fp8, 128 x 256 x 128")(lambda: matmul(torch.float8_e4m3fn, 128, 256, 128, 8, 3))
case("matmul tf32, 128 x 128 x 32")(lambda: matmul(torch.float32, 128, 128, 32, 8, 3, 2048))


def persistent(kernel: str, flatten: bool, dtype: Any = torch.float16, bk: int = 64, bn: int = 256, **options: Any) -> Any:
    size = 4096
    a, b, c = normal(size, size, dtype=dtype), normal(size, size, dtype=dtype), room(size, size)
    words = {"BM": 128, "BN": bn, "BK": bk, "GROUP": 8, "SMS": SMS, "FLATTEN": flatten, "num_warps": 8, "num_stages": 3} | options
    return lambda kernels: getattr(kernels, kernel)[(SMS,)](a, b, c, size, size, size, **words), [c]


def by_descriptors(specialized: bool, bn: int = 256) -> Any:
    size = 4096
    a, b, c = normal(size, size), normal(size, size), room(size, size)
    words = {"BM": 128, "BN": bn, "BK": 64, "GROUP": 8, "WARPS": specialized, "num_warps": 4 if specialized else 8, "num_stages": 3}
    return lambda kernels: kernels.matmul_by_descriptors[(triton.cdiv(size, 128) * triton.cdiv(size, bn),)](a, b, c, size, size, size, **words), [c]


case("persistent matmul")(lambda: persistent("matmul_persistent", False))
case("persistent matmul, flattened")(lambda: persistent("matmul_persistent", True))
case("matmul by descriptors")(lambda: by_descriptors(False))
case("matmul by descriptors, warps specialized")(lambda: by_descriptors(True, 128))
case("persistent matmul by descriptors")(lambda: persistent("matmul_persistent_by_descriptors", False, WARPS=False))
case("persistent matmul by descriptors, flattened")(lambda: persistent("matmul_persistent_by_descriptors", True, WARPS=False))
case("persistent matmul by descriptors, fp8")(lambda: persistent("matmul_persistent_by_descriptors", False, torch.float8_e4m3fn, 128, WARPS=False))
case("persistent matmul by descriptors, warps specialized")(lambda: persistent("matmul_persistent_by_descriptors", False, bn=128, WARPS=True, num_warps=4))


@case("grouped matmul")
def grouped() -> Any:
    shapes = [(1024, 1024, 1024), (2048, 2048, 512), (512, 4096, 1024), (4096, 1024, 2048)]
    tensors = [(normal(m, k), normal(k, n), room(m, n)) for m, n, k in shapes]
    pointers = [torch.tensor([group[at].data_ptr() for group in tensors], device="cuda") for at in range(3)]
    sizes = torch.tensor(shapes, dtype=torch.int32, device="cuda").flatten()
    words = {"SMS": SMS, "BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}
    return lambda kernels: kernels.grouped_matmul[(SMS,)](*pointers, sizes, len(shapes), **words), [group[2] for group in tensors]


class LayerNorm:
    rows, columns = 8192, 4096

    def __init__(self) -> None:
        self.x, self.up = normal(self.rows, self.columns), normal(self.rows, self.columns)
        self.weight, self.bias = normal(self.columns), normal(self.columns)
        self.out = room(self.rows, self.columns)
        self.mean, self.scale = room(self.rows, dtype=torch.float32), room(self.rows, dtype=torch.float32)

    def forward(self, kernels: Any) -> Any:
        given = (self.x, self.out, self.weight, self.bias, self.mean, self.scale, self.columns, 1e-5)
        return kernels.layer_norm[(self.rows,)](*given, BLOCK=1024, num_warps=8)


@case("layer norm, forward")
def layer_norm() -> Any:
    layer = LayerNorm()
    return layer.forward, [layer.out, layer.mean, layer.scale]


@case("layer norm, backward")
def layer_norm_back() -> Any:
    layer, group = LayerNorm(), 64
    COMPILER.use(False)
    layer.forward(KERNELS["plain"])
    out, sums = room(layer.rows, layer.columns), [room(group, layer.columns) for _ in range(2)]
    locks = room(2 * group, dtype=torch.int32)
    given = (out, layer.up, *sums, layer.x, layer.weight, layer.mean, layer.scale, locks, layer.columns)
    # The sums depend on the order of the rows, in plain runs too.
    return lambda kernels: kernels.layer_norm_back[(layer.rows,)](*given, GROUP=group, BLOCK=4096, num_warps=8), [out], *sums, locks


@case("layer norm, sums of the weights")
def layer_norm_sums() -> Any:
    rows, columns = 4096, 8192
    parts, out = normal(rows, columns, dtype=torch.float32), room(columns, dtype=torch.float32)
    return lambda kernels: kernels.layer_norm_sums[(columns // 64,)](parts, out, rows, columns, BM=32, BN=64), [out]


class Attention:
    heads, length = 64, 2048

    def __init__(self, depth: int) -> None:
        self.rows, self.depth = self.heads * self.length, depth
        self.q, self.k, self.v, self.up = (normal(self.rows, depth) for _ in range(4))
        self.out, self.logs = room(self.rows, depth), room(self.rows, dtype=torch.float32)
        self.scale = 0.5 / depth**0.5

    def forward(self, kernels: Any, causal: bool, warps: bool = False) -> Any:
        words = {"LENGTH": self.length, "D": self.depth, "BM": 128, "BN": 64, "CAUSAL": causal, "WARPS": warps, "num_warps": 4 if warps else 8, "num_stages": 3}
        grid = (self.length // 128, self.heads)
        return kernels.attention[grid](self.q, self.k, self.v, self.out, self.logs, self.scale, self.rows, **words)


def attention(depth: int, causal: bool, warps: bool = False) -> Any:
    given = Attention(depth)
    return lambda kernels: given.forward(kernels, causal, warps), [given.out, given.logs]


case("attention, 64 deep")(lambda: attention(64, False))
case("attention, 64 deep, causal")(lambda: attention(64, True))
case("attention, 128 deep, causal")(lambda: attention(128, True))
case("attention, 64 deep, warps specialized")(lambda: attention(64, False, True))
case("attention, 128 deep, warps specialized")(lambda: attention(128, False, True))


def attention_back(of_keys: bool) -> Any:
    given = Attention(64)
    COMPILER.use(False)
    given.forward(KERNELS["plain"], True)
    deltas = (given.out.float() * given.up.float()).sum(-1)
    outputs = [torch.zeros_like(given.q) for _ in range(2 if of_keys else 1)]
    words = {"D": 64, "BM": 64 if of_keys else 128, "BN": 128 if of_keys else 64, "num_warps": 4 if of_keys else 8, "num_stages": 3}
    name = "attention_back_keys" if of_keys else "attention_back_queries"

    def launch(kernels: Any) -> Any:
        inputs = (given.q, given.k, given.v, given.up, *outputs, given.logs, deltas, given.scale, given.length)
        return getattr(kernels, name)[(given.length // 128, given.heads)](*inputs, **words)

    return launch, outputs


case("attention, backward of keys")(lambda: attention_back(True))
case("attention, backward of queries")(lambda: attention_back(False))

if __name__ == "__main__":
    # Descriptors that a kernel makes lie in memory that the host gives.
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    SMS = torch.cuda.get_device_properties(0).multi_processor_count
    run(CASES, sys.argv[1:])
