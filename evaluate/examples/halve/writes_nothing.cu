// verdict: wrong result
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count) {}
