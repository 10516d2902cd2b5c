//@ about: sparse lower triangular solve without levels: a warp for each row spins until what the row needs is there
//@ entry: triangular_solve
//@ grid: 32768
//@ block: 256
//@ reset: yes
//@ arg: i32 262144
//@ arg: i32[262145] csr 262144 32
//@ arg: i32[8388608] lower 32 4096 100000
//@ arg: f64[8388608] const 0.01
//@ arg: f64[262144] rand 37
//@ arg: f64[262144] zero
//@ arg: i32[262144] zero
//@ long: grid 1056
//@ long: arg 0 i32 8448
//@ long: arg 2 i32[8388608] lower 32 1 1

// The diagonal is one and not stored. Rows are given out in the order of their numbers, so that a row waits only for rows that run or
// have run.
__global__ void triangular_solve(int rows, const int *row_start, const int *column, const double *value, const double *b,
                                 volatile double *x, volatile int *ready)
{
    const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;

    double sum = 0.0;
    for (int e = row_start[row] + lane; e < row_start[row + 1]; e += 32) {
        const int c = column[e];
        if (c >= row) continue;
        while (ready[c] == 0) {
        }
        __threadfence();
        sum += value[e] * x[c];
    }
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);

    if (lane == 0) {
        x[row] = b[row] - sum;
        __threadfence();
        ready[row] = 1;
    }
}
