// verdict: compile error
extern "C" __global__ void double_it(const unsigned* numbers, unsigned* steps, int count)
{
    for (int i = 0; i < count; ++i) steps[i] = 2 * numbers[i];
}
