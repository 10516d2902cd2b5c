//@ about: bounded recursion: Ackermann, Fibonacci, and a pair that call each other
//@ entry: recurse
//@ flags: -Xptxas=--suppress-stack-size-warning
//@ grid: 4
//@ block: 32
//@ arg: i32[128] zero
//@ arg: i32[128] zero
//@ arg: i32[128] zero

__device__ __noinline__ int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ int ackermann(int m, int n)
{
    if (m == 0) return n + 1;
    if (n == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

__device__ bool is_odd(unsigned n);
__device__ bool is_even(unsigned n) { return n == 0 || is_odd(n - 1); }
__device__ bool is_odd(unsigned n) { return n != 0 && is_even(n - 1); }

__global__ void recurse(int *fib, int *ack, int *even)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;

    fib[tid] = fibonacci(tid % 13);
    ack[tid] = ackermann(tid % 3, tid % 4);
    even[tid] = is_even(tid % 9u) ? tid : -tid;
}
