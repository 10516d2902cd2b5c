"""Numba's kernels, plain and with polls: `python numba_suite.py ROWS SECONDS` (see overhead.py)."""
from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from cuda_of_numba import cuda
from numba import float32
from overhead import Case, Form, run

import cuinstr

TILE = 16


def saxpy(a: Any, x: Any, y: Any) -> None:
    at = cuda.grid(1)
    if at < y.size:
        y[at] = a * x[at] + y[at]


def saxpy_stride(a: Any, x: Any, y: Any) -> None:
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[at] = a * x[at] + y[at]


def matmul(a: Any, b: Any, c: Any) -> None:
    left, right = cuda.shared.array((TILE, TILE), float32), cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[y, x] = a[row, tile * TILE + x]
        right[y, x] = b[tile * TILE + y, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    c[row, column] = total


def sums(x: Any, out: Any) -> None:
    part = cuda.shared.array(256, float32)
    at = cuda.threadIdx.x
    total = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        total += x[i]
    part[at] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if at < half:
            part[at] += part[at + half]
        cuda.syncthreads()
        half //= 2
    if at == 0:
        out[cuda.blockIdx.x] = part[0]


def mandelbrot(out: Any, most: Any, width: Any) -> None:
    column, row = cuda.grid(2)
    if row < out.shape[0] and column < out.shape[1]:
        x, y = float32(-2.2) + width * float32(column), float32(-1.5) + width * float32(row)
        real = imaginary = float32(0)
        steps = 0
        while steps < most and real * real + imaginary * imaginary <= float32(4):
            real, imaginary = real * real - imaginary * imaginary + x, float32(2) * real * imaginary + y
            steps += 1
        out[row, column] = steps


def nbody(places: Any, forces: Any) -> None:
    at = cuda.grid(1)
    if at < places.shape[0]:
        x, y, z = places[at, 0], places[at, 1], places[at, 2]
        fx = fy = fz = float32(0)
        for other in range(places.shape[0]):
            dx, dy, dz = places[other, 0] - x, places[other, 1] - y, places[other, 2] - z
            inverse = float32(1) / math.sqrt(dx * dx + dy * dy + dz * dz + float32(1e-3))
            weight = places[other, 3] * inverse * inverse * inverse
            fx += dx * weight
            fy += dy * weight
            fz += dz * weight
        forces[at, 0] = fx
        forces[at, 1] = fy
        forces[at, 2] = fz


def histogram(keys: Any, bins: Any) -> None:
    own = cuda.shared.array(256, np.int32)
    own[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for at in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        cuda.atomic.add(own, keys[at] & 255, 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, cuda.threadIdx.x, own[cuda.threadIdx.x])


def stencil(x: Any, out: Any) -> None:
    i, j = cuda.grid(2)
    if 0 < i < x.shape[2] - 1 and 0 < j < x.shape[1] - 1:
        for k in range(1, x.shape[0] - 1):
            around = x[k - 1, j, i] + x[k + 1, j, i] + x[k, j - 1, i] + x[k, j + 1, i] + x[k, j, i - 1] + x[k, j, i + 1]
            out[k, j, i] = x[k, j, i] + float32(0.1) * (around - float32(6) * x[k, j, i])


class Compiler:
    """Has Numba put polls into what it compiles, or not."""

    def __init__(self) -> None:
        from numba.cuda import codegen, dispatcher

        self.places = [(codegen.CUDACodeLibrary, "get_cubin"), (dispatcher._Kernel, "launch")]
        self.plain = [getattr(*place) for place in self.places]
        cuinstr.numba.install()
        self.polls = [getattr(*place) for place in self.places]
        self.use(False)

    def use(self, has_polls: bool) -> None:
        for (owner, name), function in zip(self.places, self.polls if has_polls else self.plain):
            setattr(owner, name, function)


def random(*shape: int) -> Any:
    return np.random.default_rng(0).random(shape, dtype=np.float32)


# Of each kernel: grid, block, inputs, and the first values of what it writes.
GIVEN: dict[Any, Callable[[], tuple[Any, Any, list[Any], list[Any]]]] = {
    saxpy: lambda: (1 << 17, 256, [np.float32(1.5), random(1 << 25)], [random(1 << 25)]),
    saxpy_stride: lambda: (1056, 256, [np.float32(1.5), random(1 << 25)], [random(1 << 25)]),
    matmul: lambda: ((128, 128), (TILE, TILE), [random(2048, 2048), random(2048, 2048)], [random(2048, 2048)]),
    sums: lambda: (1056, 256, [random(1 << 26)], [random(1056)]),
    mandelbrot: lambda: ((256, 256), (16, 16), [], [np.zeros((4096, 4096), np.int32), 1000, np.float32(3 / 4096)]),
    nbody: lambda: (128, 256, [random(1 << 15, 4)], [random(1 << 15, 3)]),
    histogram: lambda: (1056, 256, [(random(1 << 26) * 1e6).astype(np.int32)], [np.zeros(256, np.int32)]),
    stencil: lambda: ((32, 64), (16, 8), [random(128, 512, 512)], [random(128, 512, 512)]),
}


def case_of(function: Any, compiler: Compiler) -> Case:
    grid, block, inputs, written = GIVEN[function]()
    outputs = [array for array in written if isinstance(array, np.ndarray)]
    on_device = [cuda.to_device(array) for array in outputs]
    given = [cuda.to_device(array) if isinstance(array, np.ndarray) else array for array in inputs]
    given += [*on_device, *(value for value in written if not isinstance(value, np.ndarray))]
    forms = {}
    for form in ("plain", "polls"):
        compiler.use(form == "polls")
        kernel = cuda.jit(function)
        kernel[grid, block](*given)
        cuda.synchronize()
        compiled = next(iter(kernel.overloads.values()))
        launch = kernel[grid, block]
        forms[form] = Form(lambda launch=launch: launch(*given), cuinstr.attach(compiled) if form == "polls" else None)
    compiler.use(False)

    def reset() -> None:
        for place, first in zip(on_device, outputs):
            place.copy_to_device(first)

    return Case(forms, reset, lambda: [place.copy_to_host() for place in on_device])


if __name__ == "__main__":
    COMPILER = Compiler()
    run({function.__name__: lambda function=function: case_of(function, COMPILER) for function in GIVEN}, sys.argv[1:])
