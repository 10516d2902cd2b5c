//@ about: FFTs of 1024 points, radix 2, self-sorting, all stages in shared memory, a transform after the other for each block
//@ entry: fft1024
//@ grid: 1056
//@ block: 256
//@ arg: f32[34603008] rand 31
//@ arg: f32[34603008] zero
//@ arg: i32 16896
//@ arg: i32 10
//@ long: grid 528
//@ long: arg 0 f32[2162688000] zero
//@ long: arg 1 f32[2162688000] zero
//@ long: arg 2 i32 1056000

constexpr int kPoints = 1024;

// The first stages of each transform are independent of the later ones' order: Stockham's form needs no bit reversal, but two buffers.
__global__ void fft1024(const float2 *in, float2 *out, int transforms, int stages)
{
    __shared__ float2 buffer[2][kPoints];

    for (int t = blockIdx.x; t < transforms; t += gridDim.x) {
        const float2 *x = in + (size_t)t * kPoints;
        for (int i = threadIdx.x; i < kPoints; i += blockDim.x)
            buffer[0][i] = x[i];
        __syncthreads();

        int from = 0;
        for (int stage = 0; stage < stages; ++stage) {
            const int span = 1 << stage;        // transforms of this length are done
            for (int i = threadIdx.x; i < kPoints / 2; i += blockDim.x) {
                const int k = i & (span - 1);
                float s, c;
                sincospif(-(float)k / span, &s, &c);
                const float2 a = buffer[from][i], b = buffer[from][i + kPoints / 2];
                const float2 w = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
                const int at = ((i - k) << 1) + k;
                buffer[from ^ 1][at] = make_float2(a.x + w.x, a.y + w.y);
                buffer[from ^ 1][at + span] = make_float2(a.x - w.x, a.y - w.y);
            }
            __syncthreads();
            from ^= 1;
        }

        float2 *y = out + (size_t)t * kPoints;
        for (int i = threadIdx.x; i < kPoints; i += blockDim.x)
            y[i] = buffer[from][i];
        __syncthreads();
    }
}
