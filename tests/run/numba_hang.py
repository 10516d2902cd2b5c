"""A Numba kernel that is right, then one that never ends: `python numba_hang.py [right]`, which ends behind the first."""
import sys

import numpy as np
from cuda_of_numba import cuda


@cuda.jit
def scale(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= 2


@cuda.jit
def spin(flag, out):
    n = 0
    while flag[0] == 0:
        n += 1
        cuda.threadfence()
    out[0] = n


x = cuda.to_device(np.arange(8, dtype=np.float32))
scale[1, 32](x)
print("right", x.copy_to_host().tolist() == [2.0 * i for i in range(8)])
if sys.argv[1:] == ["right"]:
    sys.exit()
flag = cuda.to_device(np.zeros(1, np.int32))
spin[1, 1](flag, cuda.to_device(np.zeros(1, np.int32)))
cuda.synchronize()
