//@ about: sparse matrix times vector, CSR, one row for each thread
//@ entry: spmv
//@ grid: 32
//@ block: 128
//@ arg: i32 4000
//@ arg: i32[4001] csr 4000 11
//@ arg: i32[44000] mod 3989
//@ arg: f64[44000] rand 15
//@ arg: f64[3989] rand 16
//@ arg: f64[4000] zero

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

__global__ void spmv(int rows, const int *row_start, const int *column, const double *value,
                     const double *x, double *y)
{
    const CsrMatrix a = { rows, row_start, column, value };

    const int row = threadIdx.x + blockIdx.x * blockDim.x;
    if (row < a.rows)
        y[row] = dot_row(a, row, x);
}
