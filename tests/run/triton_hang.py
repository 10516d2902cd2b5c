"""A Triton kernel that is right, then one that never ends, then more work in the same context."""
import torch
import triton
import triton.language as tl


@triton.jit
def scale(p, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(p + i, mask=i < n)
    tl.store(p + i, x * 3, mask=i < n)


@triton.jit
def spin(p, out):
    x = tl.load(p, volatile=True)
    while x == 0:
        x = tl.load(p, volatile=True)
    tl.store(out, x)


flag = torch.zeros(1, dtype=torch.int32, device="cuda")
y = torch.arange(1000, dtype=torch.float32, device="cuda")
scale[(8,)](y, 1000, 128)
print("right", torch.equal(y, torch.arange(1000, dtype=torch.float32, device="cuda") * 3))
spin[(4,)](flag, torch.zeros_like(flag))
try:
    torch.cuda.synchronize()
    print("after", (torch.ones(4, device="cuda") * 10).tolist())
except Exception as error:
    print("error", str(error).splitlines()[0])
