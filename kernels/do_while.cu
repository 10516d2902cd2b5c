//@ about: do loops: binary gcd, decimal digits, integer square root
//@ entry: number_facts
//@ grid: 40
//@ block: 64
//@ arg: u32[2560] rand 35
//@ arg: u32[2560] mod 30011
//@ arg: u32[2560] zero
//@ arg: i32[2560] zero
//@ arg: u32[2560] zero

__device__ unsigned gcd(unsigned a, unsigned b)
{
    if (a == 0 || b == 0) return a | b;
    const int shift = __ffs(a | b) - 1;
    a >>= __ffs(a) - 1;
    do {
        b >>= __ffs(b) - 1;
        if (a > b) { const unsigned t = a; a = b; b = t; }
        b -= a;
    } while (b != 0);
    return a << shift;
}

__device__ int digit_sum(unsigned n)
{
    int sum = 0;
    do sum += n % 10; while (n /= 10);
    return sum;
}

__device__ unsigned isqrt(unsigned n)
{
    unsigned long long x = n, y;
    if (x < 2) return n;
    do {
        y = x;
        x = (y + n / y) / 2;
    }
    while (x < y);
    return static_cast<unsigned>(y);
}

__global__ void number_facts(const unsigned *a, const unsigned *b, unsigned *divisor, int *digits, unsigned *root)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    divisor[i] = gcd(a[i], b[i]);
    digits[i] = digit_sum(a[i]);
    root[i] = isqrt(a[i]);
}
