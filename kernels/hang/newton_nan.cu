//@ about: an iteration meets NaN, so that no test of convergence ever holds
//@ entry: solve_kepler
//@ grid: 2
//@ block: 64
//@ arg: f64[128] rand 8
//@ arg: f64 2.0
//@ arg: f64[128] zero
//@ tier: 1

// E - e sin E = M, with an eccentricity that makes the first guess NaN
__global__ void solve_kepler(const double *mean, double e, volatile double *anomaly)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    double x = sqrt(1.0 - e) + mean[i];
    double error;

    do // HANG
    {
        error = x - e * sin(x) - mean[i];
        x -= error / (1.0 - e * cos(x));
        anomaly[i] = x;
    }
    while (!(fabs(error) < 1e-12));
}
