// verdict: fault
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    if (threadIdx.x == 3) __trap();
}
