// verdict: timeout in line 7
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    volatile unsigned* n = steps + i;
    for (*n = numbers[i]; *n != 1;) *n /= 2;
}
