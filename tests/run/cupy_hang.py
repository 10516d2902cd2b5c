"""A CuPy kernel that is right, then one that never ends, then more work in the same context."""
import cupy

SPIN = r"""
extern "C" __global__ void spin(volatile int* flag, int* out) {
  while (*flag == 0) { }
  out[0] = 1;
}"""
SCALE = 'extern "C" __global__ void scale(float* x, int n) { for (int i = threadIdx.x; i < n; i += 32) x[i] *= 3; }'
x = cupy.arange(8, dtype=cupy.float32)
cupy.RawKernel(SCALE, "scale")((1,), (32,), (x, 8))
print("right", x.get().tolist() == [3.0 * i for i in range(8)])
flag = cupy.zeros(1, dtype=cupy.int32)
cupy.RawKernel(SPIN, "spin", options=("-lineinfo",))((16,), (64,), (flag, cupy.zeros_like(flag)))
try:
    cupy.cuda.Device().synchronize()
    print("after", (cupy.arange(4) * 10).get().tolist())
except Exception as error:
    print("error", error)
