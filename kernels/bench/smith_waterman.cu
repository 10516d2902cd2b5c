//@ about: Smith–Waterman with affine gaps, a pair for each block, a row of the matrix for each thread, along anti-diagonals
//@ entry: smith_waterman
//@ grid: 1056
//@ block: 256
//@ arg: u8[270336] mod 4
//@ arg: u8[1081344] rand 36
//@ arg: i32[1056] zero
//@ arg: i32 1024
//@ long: grid 528
//@ long: arg 1 u8[2112000000] zero
//@ long: arg 3 i32 2000000

constexpr int kQuery = 256;
constexpr int kMatch = 3, kMismatch = -2, kOpen = 5, kExtend = 1;

// Sequences are bytes of which the lowest two bits count. Pair p is query p (kQuery long) and target p.
__global__ void smith_waterman(const unsigned char *queries, const unsigned char *targets, int *scores, int target_length)
{
    __shared__ int row_h[2][kQuery], row_f[2][kQuery];
    __shared__ int best_of[kQuery];
    const int t = threadIdx.x;
    const unsigned char *target = targets + (size_t)blockIdx.x * target_length;
    const int base = queries[blockIdx.x * kQuery + t] & 3;

    int left = 0, diagonal = 0, e = 0, best = 0;
    row_h[0][t] = row_h[1][t] = row_f[0][t] = row_f[1][t] = 0;
    __syncthreads();

    // In step s this thread is at column s - t of its row; its upper neighbour was there one step ago.
    for (int s = 0; s < target_length + kQuery - 1; ++s) {
        const int now = s & 1, before = now ^ 1;
        const int column = s - t;
        if (column >= 0 && column < target_length) {
            const int up = t > 0 ? row_h[before][t - 1] : 0;
            const int up_f = t > 0 ? row_f[before][t - 1] : 0;
            e = max(left - kOpen, e - kExtend);
            const int f = max(up - kOpen, up_f - kExtend);
            int h = diagonal + ((target[column] & 3) == base ? kMatch : kMismatch);
            h = max(max(h, 0), max(e, f));
            best = max(best, h);
            row_h[now][t] = h;
            row_f[now][t] = f;
            left = h;
            diagonal = up;
        }
        __syncthreads();
    }

    best_of[t] = best;
    __syncthreads();
    for (int half = kQuery / 2; half > 0; half /= 2) {
        if (t < half) best_of[t] = max(best_of[t], best_of[t + half]);
        __syncthreads();
    }
    if (t == 0) scores[blockIdx.x] = best_of[0];
}
