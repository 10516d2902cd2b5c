// Halves each number until one is left.
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned n = numbers[i], step = 0;
    while (n > 1) {
        n /= 2;
        ++step;
    }
    steps[i] = step;
}
