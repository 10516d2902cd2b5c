// `nvcc -ptx -arch=sm_90 triangle.cu`: inner loops with few trips that begin at a counter of another loop.
extern "C" __global__ void triangle(int* out, int n, int m)
{
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < m; ++j)
            for (int k = j; k < n; k += 3) out[i * m + j] += k;
}

extern "C" __global__ void wide(long* out, long n, long m)
{
    for (long i = 0; i < n; ++i)
        for (long j = 0; j < m; ++j)
            for (long k = j; k <= n; k += 6) out[i * m + j] += k;
}
