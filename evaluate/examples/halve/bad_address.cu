// verdict: fault
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    ((unsigned*)16)[threadIdx.x] = count;
}
