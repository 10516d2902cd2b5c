//@ about: statement macros that hold whole loops
//@ entry: plane_stats
//@ grid: 6
//@ block: 128
//@ arg: i32[30000] mod 4001
//@ arg: i32 700
//@ arg: i32 40
//@ arg: i64[700] zero
//@ arg: i32[700] zero

#define SUM_STRIDED(result, p, count, stride)           \
    do {                                                \
        long long sum_ = 0;                             \
        for (int k_ = 0; k_ < (count); ++k_)            \
            sum_ += (p)[k_ * (stride)];                 \
        (result) = sum_;                                \
    } while (0)

#define SKIP_WHILE(i, condition) while (condition) ++(i)

__global__ void plane_stats(const int *data, int columns, int rows, long long *sum, int *first_large)
{
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= columns) return;

    SUM_STRIDED(sum[col], data + col, rows, columns);

    int row = 0;
    SKIP_WHILE(row, row < rows && data[row * columns + col] < 3900);
    first_large[col] = row;
}
