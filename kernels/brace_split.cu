//@ about: conditional compilation whose arms split braces and loop heads
//@ entry: smooth_rows
//@ grid: 30
//@ block: 128
//@ arg: i32[30000] mod 5003
//@ arg: i64[30000] zero
//@ arg: i32 1000
//@ arg: i32 9

#define WALK_BACKWARDS 1
// #define CLAMP_EDGES

__global__ void smooth_rows(const int *in, long long *out, int width, int taps)
{
    const int *row = in + blockIdx.x * width;

#if WALK_BACKWARDS
    for (int x = width - 1 - (int)threadIdx.x; x >= 0; x -= blockDim.x) {
#else
    for (int x = threadIdx.x; x < width; x += blockDim.x) {
#endif
        long long sum = 0;
        for (int t = -taps; t <= taps; ++t) {
#ifdef CLAMP_EDGES
            const int at = min(max(x + t, 0), width - 1);
            {
#else
            const int at = x + t;
            if (at >= 0 && at < width) {
#endif
                sum += (long long)row[at] * (taps + 1 - abs(t));
            }
        }
#if defined(WALK_BACKWARDS) && \
    !defined(CLAMP_EDGES)
        out[blockIdx.x * width + x] = sum; }
#else
        out[blockIdx.x * width + x] = -sum;
    }
#endif
}
