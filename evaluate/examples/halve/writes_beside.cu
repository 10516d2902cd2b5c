// verdict: wrong result
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= count) steps[i] = i == count || numbers[i] == 0 ? 0 : 31 - __clz(numbers[i]);
}
