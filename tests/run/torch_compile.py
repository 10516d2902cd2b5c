"""A function that torch.compile makes Triton kernels of: its result, and microseconds a call."""
import time

import torch

torch.manual_seed(0)


def function(x, w):
    h = torch.nn.functional.gelu(x @ w)
    return torch.softmax(h * 1.5 + h.sin(), -1).sum(0)


x, w = torch.randn(512, 256, device="cuda"), torch.randn(256, 512, device="cuda")
compiled = torch.compile(function)
result = compiled(x, w)
torch.cuda.synchronize()
since = time.perf_counter()
for _ in range(200):
    result = compiled(x, w)
torch.cuda.synchronize()
print(f"result {result.sum().item():.9g} {result.max().item():.9g}")
print("right", torch.allclose(result, function(x, w), rtol=1e-4, atol=1e-5))
print(f"TIME call {(time.perf_counter() - since) / 200 * 1e6:.1f}")
