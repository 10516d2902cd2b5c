//@ about: generic lambdas in a kernel, one of them called where it stands
//@ entry: polynomial_table
//@ grid: 16
//@ block: 64
//@ arg: i32[8] mod 13
//@ arg: f64[8] rand 28
//@ arg: i32 8
//@ arg: i64[1024] zero
//@ arg: f64[1024] zero

__global__ void polynomial_table(const int *ints, const double *reals, int degree, long long *int_out, double *real_out)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;

    auto horner = [degree](const auto *coefficients, auto x) {
        auto sum = x - x;
        for (int k = degree - 1; k >= 0; --k) sum = sum * x + coefficients[k];
        return sum;
    };

    const double x = [&] {
        double t = 1.0;
        for (int k = 0; k < i % 5; ++k) t *= 0.5;
        return t + i;
    }();

    auto store = [i](auto *out, auto... terms) { ((out[i] += terms), ...); };

    store(int_out, horner(ints, (long long)(i % 200)), 7, i);
    store(real_out, horner(reals, x / 1024));
}
