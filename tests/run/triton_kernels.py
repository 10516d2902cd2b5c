"""A Triton kernel that never ends."""
import triton
import triton.language as tl


@triton.jit
def spin(p, out):
    x = tl.load(p, volatile=True)
    while x == 0:
        x = tl.load(p, volatile=True)
    tl.store(out, x)
