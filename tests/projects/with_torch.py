"""PyTorch's own way to compile CUDA, with one word in front of nvcc. The first argument says what is done; scripts/gpu-projects says what must come of it."""

import os
import sys
import time

import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

__global__ void collatz(const int* in, int* steps, int count) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    long long n = in[i];
    int taken = 0;
    while (n != 1) {  // COLLATZ
        n = n % 2 ? 3 * n + 1 : n / 2;
        ++taken;
    }
    steps[i] = taken;
}

torch::Tensor run(torch::Tensor in) {
    auto steps = torch::empty_like(in);
    const int count = in.numel();
    collatz<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(in.data_ptr<int>(), steps.data_ptr<int>(), count);
    return steps;
}
"""


def main():
    what, name = sys.argv[1], sys.argv[2]
    extension = load_inline(name, cpp_sources="torch::Tensor run(torch::Tensor in);", cuda_sources=SOURCE, functions=["run"], verbose=False)
    if what == "build":
        return
    fine = torch.arange(1, 1 << 20, dtype=torch.int32, device="cuda")
    bad = torch.zeros(4096, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    print("loaded", flush=True)
    if what == "result":
        steps = extension.run(fine)
        torch.cuda.synchronize()
        best = 1e9
        for _ in range(30):
            since = time.perf_counter()
            for _ in range(10):
                extension.run(fine)
            torch.cuda.synchronize()
            best = min(best, (time.perf_counter() - since) / 10)
        print("sum", int(steps.sum()), "xor", int((steps * torch.arange(steps.numel(), device="cuda")).sum()))
        print("seconds", best)
        return
    try:
        if what == "hang":
            extension.run(bad)
        elif what == "streams":
            one, other = torch.cuda.Stream(), torch.cuda.Stream()
            torch.cuda.synchronize()
            with torch.cuda.stream(one):
                stuck = extension.run(bad)
            with torch.cuda.stream(other):
                for _ in range(1000):
                    steps = extension.run(fine)
        elif what in ("graph", "graph-hang"):
            held = fine.clone() if what == "graph" else torch.ones_like(bad)
            warm = torch.cuda.Stream()
            with torch.cuda.stream(warm):
                extension.run(held)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                steps = extension.run(held)
            for _ in range(100):
                graph.replay()
            torch.cuda.synchronize()
            print("replayed", int(steps.sum()))
            if what == "graph-hang":
                held.zero_()
                graph.replay()
        torch.cuda.synchronize()
        print("no error")
    except Exception as error:  # noqa: BLE001: whichever it is, its words are what is looked at
        print("error:", str(error).splitlines()[0])
        sys.stdout.flush()
        os._exit(1)


main()
