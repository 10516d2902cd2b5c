//@ about: divisors, roots, powers, primes, Collatz steps: loops whose end depends on the data
//@ entry: number_theory
//@ grid: 8
//@ block: 128
//@ arg: u32[1024] mod 9973
//@ arg: u32[1024] zero
//@ arg: i32 1000

__device__ unsigned gcd(unsigned a, unsigned b)
{
    while (b != 0) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

// The largest number whose square is at most n.
__device__ unsigned root(unsigned n)
{
    unsigned low = 0;
    unsigned high = 4096;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (middle * middle <= n)
            low = middle;
        else
            high = middle;
    }
    return low;
}

__device__ unsigned power(unsigned base, unsigned exponent, unsigned modulus)
{
    unsigned result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if ((exponent & 1) != 0)
            result = result * base % modulus;
        base = base * base % modulus;
    }
    return result;
}

__device__ unsigned least_divisor(unsigned n)
{
    for (unsigned divisor = 2; divisor * divisor <= n; ++divisor)
        if (n % divisor == 0)
            return divisor;
    return n;
}

__device__ unsigned collatz_steps(unsigned n)
{
    unsigned steps = 0;
    while (n > 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        ++steps;
    }
    return steps;
}

extern "C" __global__ void number_theory(const unsigned *in, unsigned *out, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const unsigned n = in[i];
        out[i] = gcd(n, 5040) ^ root(n) << 6 ^ power(n, n, 9973) << 12 ^ least_divisor(n) << 18 ^ collatz_steps(n) << 24;
    }
}
