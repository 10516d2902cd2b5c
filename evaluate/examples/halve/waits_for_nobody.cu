// verdict: timeout
// No loop to poll in: threads that others never meet. Only the end of the process ends it.
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 128;" ::: "memory");
    steps[threadIdx.x] = count;
}
