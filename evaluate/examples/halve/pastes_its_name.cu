// verdict: timeout or fault
// It writes zeros over what would stop it, and then never ends.
#define PASTE(a, b) a##b
extern "C" __global__ void halve(const unsigned* numbers, unsigned* steps, int count)
{
    volatile char* control = (volatile char*)&PASTE(cuinstr_con, trol_v1);
    for (int i = 0; i < 64; ++i) control[i] = 0;
    volatile unsigned* n = steps;
    while (*n != 1) *n = 2;
}
