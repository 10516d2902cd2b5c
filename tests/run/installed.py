"""Kernels of Triton, CuPy or Numba that never end, guarded without `cuinstr run`: `python installed.py triton|cupy|numba`."""
import sys

import cuinstr


def with_triton():
    import torch
    import triton
    import triton.language as tl
    from triton_kernels import spin

    cuinstr.triton.install()
    flag = torch.zeros(1, dtype=torch.int32, device="cuda")
    guarded(spin, lambda: spin[(4,)](flag, torch.zeros_like(flag)))
    guarded(spin.warmup(flag, torch.zeros_like(flag), grid=(4,)), lambda: spin[(4,)](flag, torch.zeros_like(flag)))
    return (torch.ones(4, device="cuda") * 10).tolist()


def with_cupy():
    import cupy

    cuinstr.cupy.install()
    source = 'extern "C" __global__ void spin(volatile int* flag, int* out) {\n  while (*flag == 0) { }\n  out[0] = 1;\n}'
    spin = cupy.RawKernel(source, "spin", options=("-lineinfo",))
    flag = cupy.zeros(1, dtype=cupy.int32)
    guarded(spin, lambda: spin((16,), (64,), (flag, cupy.zeros_like(flag))))
    return (cupy.ones(4) * 10).get().tolist()


def with_numba():
    import numpy as np
    from cuda_of_numba import cuda

    cuinstr.numba.install()

    @cuda.jit
    def spin(flag, out):
        n = 0
        while flag[0] == 0:
            n += 1
            cuda.threadfence()
        out[0] = n

    flag = cuda.to_device(np.zeros(1, np.int32))
    out = cuda.to_device(np.zeros(1, np.int32))
    guarded(spin, lambda: spin[1, 1](flag, out))
    return cuda.to_device(np.full(4, 10.0)).copy_to_host().tolist()


def guarded(kernel, launch):
    with cuinstr.guard(kernel, timeout="100ms", raises=False) as guard:
        launch()
    print(f"stopped {guard.outcome.stopped}\n{guard.outcome}")


print("after", {"triton": with_triton, "cupy": with_cupy, "numba": with_numba}[sys.argv[1]]())
