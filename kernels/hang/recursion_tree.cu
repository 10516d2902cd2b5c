//@ about: recursion eleven deep, 16 calls at each level, no loop: the stack holds it, and it goes on for weeks
//@ entry: count_games
//@ flags: -Xptxas=--suppress-stack-size-warning
//@ block: 32
//@ arg: u32[32] zero
//@ arg: u32[32] zero
//@ tier: 1

__device__ __noinline__ unsigned games(unsigned board, int moves_left, volatile unsigned *last) // HANG
{
    if (moves_left == 0) {
        *last = board;
        return board & 1;
    }

    const unsigned b = board * 16 + 1;
    const int n = moves_left - 1;
    return games(b, n, last) + games(b + 1, n, last) + games(b + 2, n, last) + games(b + 3, n, last)
        + games(b + 4, n, last) + games(b + 5, n, last) + games(b + 6, n, last) + games(b + 7, n, last)
        + games(b + 8, n, last) + games(b + 9, n, last) + games(b + 10, n, last) + games(b + 11, n, last)
        + games(b + 12, n, last) + games(b + 13, n, last) + games(b + 14, n, last) + games(b + 15, n, last);
}

__global__ void count_games(unsigned *count, unsigned *last)
{
    count[threadIdx.x] = games(threadIdx.x, 11, &last[threadIdx.x]);
}
