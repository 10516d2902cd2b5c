//@ about: one thread of the grid hangs, the others have long ended
//@ entry: newton_roots
//@ grid: 64
//@ block: 256
//@ arg: f32[16384] iota
//@ arg: f32[16384] zero
//@ tier: 1

// Square roots by Newton's method; x = 0 begins with 0 / 0, and NaN is close to nothing.
__global__ void newton_roots(const float *x, volatile float *root)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r = x[i], old;
    do {    // HANG
        old = r;
        r = 0.5f * (old + x[i] / old);
        root[i] = r;
    } while (!(fabsf(r - old) <= 1e-5f * r));
}
