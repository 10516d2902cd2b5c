// verdict: pass
// With --measure it is a wrong result: it asks how much shared memory its block has. Fuel takes some. Without polls there is none.
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    unsigned shared;
    asm("mov.u32 %0, %total_smem_size;" : "=r"(shared));
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count || shared == 0) return;
    unsigned n = numbers[i], step = 0;
    while (n > 1) {
        n /= 2;
        ++step;
    }
    steps[i] = step;
}
