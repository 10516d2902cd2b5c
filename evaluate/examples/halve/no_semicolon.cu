// verdict: compile error in line 5
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    int i = threadIdx.x
    steps[i] = count;
}
