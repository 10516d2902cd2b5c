//@ about: no loop at all: sleeps in straight-line code for tens of milliseconds
//@ entry: nap
//@ grid: 4
//@ block: 64
//@ arg: u32[256] iota
//@ arg: u32[256] zero

#define DOZE __nanosleep(1000000); __nanosleep(1000000); __nanosleep(1000000); __nanosleep(1000000);

extern "C" __global__ void nap(const unsigned *in, volatile unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 1;
    DOZE DOZE DOZE DOZE DOZE DOZE DOZE DOZE
    DOZE DOZE DOZE DOZE DOZE DOZE DOZE DOZE
    out[i] = 3 * in[i] + 1;
}
