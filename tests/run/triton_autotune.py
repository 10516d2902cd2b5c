"""Four configurations, one of which never ends."""
import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"B": 64, "HANG": k == 2}) for k in range(3)] + [triton.Config({"B": 256, "HANG": False})]


@triton.autotune(configs=CONFIGS, key=["n"], warmup=1, rep=2)
@triton.jit
def add(x, y, n, flag, B: tl.constexpr, HANG: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if HANG:
        f = tl.load(flag, volatile=True)
        while f == 0:
            f = tl.load(flag, volatile=True)
    tl.store(y + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


n = 1000
x = torch.arange(n, dtype=torch.float32, device="cuda")
y = torch.zeros_like(x)
add[lambda meta: (triton.cdiv(n, meta["B"]),)](x, y, n, torch.zeros(1, dtype=torch.int32, device="cuda"))
torch.cuda.synchronize()
print("right", torch.equal(y, x + 1), "chosen hangs", add.best_config.kwargs["HANG"])
