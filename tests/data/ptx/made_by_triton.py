# PTX that is not nvcc's: a loop whose trip count is an argument. The PTX beside it is Triton 3.9.0's, with the ptxas of its wheel, made
# without a GPU (`pip install triton`, then `python made_by_triton.py > triton.ptx`); paths are
# shortened and the sections of debug information cut off.
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def sum_rows(x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(0, n, BLOCK):
        at = k + tl.arange(0, BLOCK)
        acc += tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(y + row, tl.sum(acc, axis=0))


source = ASTSource(fn=sum_rows, signature={"x": "*fp32", "y": "*fp32", "n": "i32"}, constexprs={"BLOCK": 128})
kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 1})
print(kernel.asm["ptx"], end="")
