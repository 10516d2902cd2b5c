"""A kernel of PyTorch's own, machine code, that takes some ten seconds."""
import torch

torch.cuda._sleep(2 * 10**10)
torch.cuda.synchronize()
print("not reached")
