// verdict: pass or timeout or fault or wrong result
// It tells itself, and whoever is next, to stop.
#define PASTE(a, b) a##b
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    volatile unsigned* flag = (volatile unsigned*)&PASTE(cuinstr_fl, ag_v1);
    for (unsigned i = 0; i < 100000; ++i) *flag = i;
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) steps[at] = numbers[at] == 0 ? 0 : 31 - __clz(numbers[at]);
}
