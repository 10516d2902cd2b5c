//@ about: sparse matrix times vector, CSR, short rows, one row for each thread
//@ entry: spmv_csr
//@ grid: 8192
//@ block: 128
//@ arg: i32 1048576
//@ arg: i32[1048577] csr 1048576 11
//@ arg: i32[11534336] mod 999983
//@ arg: f64[11534336] rand 19
//@ arg: f64[999983] rand 20
//@ arg: f64[1048576] zero
//@ long: grid 2112
//@ long: arg 0 i32 270336
//@ long: arg 1 i32[270337] csr 270336 4000
//@ long: arg 2 i32[1081344000] zero
//@ long: arg 3 f64[1081344000] zero

struct CsrMatrix
{
    int rows;
    const int *row_start;
    const int *column;
    const double *value;
};

static __device__ double dot_row(const CsrMatrix &a, int row, const double *x)
{
    double sum = 0.0;
    int const end = a.row_start[row + 1];
    for (int e = a.row_start[row]; e != end; e++)
        sum += a.value[e] * __ldg(x + a.column[e]);
    return sum;
}

__global__ void spmv_csr(int rows, const int *row_start, const int *column, const double *value,
                         const double *x, double *y)
{
    const CsrMatrix a = { rows, row_start, column, value };

    const int row = threadIdx.x + blockIdx.x * blockDim.x;
    if (row < a.rows)
        y[row] = dot_row(a, row, x);
}
