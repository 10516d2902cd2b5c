// Whole numbers: every loop ends by what the data says, and a small change of it often never does.

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

__device__ unsigned digit_sum(unsigned n)
{
    unsigned sum = 0;
    do {
        sum += n % 10;
        n /= 10;
    } while (n > 0);
    return sum;
}

// How many numbers below n share no divisor with it.
__device__ unsigned totient(unsigned n)
{
    unsigned result = n;
    for (unsigned p = 2; p * p <= n; ++p) {
        if (n % p == 0) {
            while (n % p == 0)
                n /= p;
            result -= result / p;
        }
    }
    if (n > 1)
        result -= result / n;
    return result;
}

// Pollard's rho: a divisor, or n itself.
__device__ unsigned rho(unsigned n)
{
    unsigned slow = 2, fast = 2, found = 1;
    while (found == 1) {
        slow = (slow * slow + 1) % n;
        fast = (fast * fast + 1) % n;
        fast = (fast * fast + 1) % n;
        found = gcd(slow > fast ? slow - fast : fast - slow, n);
    }
    return found;
}

__device__ unsigned reversed(unsigned n, int bits)
{
    unsigned result = 0;
    while (bits > 0) {
        result = result << 1 | (n & 1);
        n >>= 1;
        --bits;
    }
    return result;
}

__device__ int find(const unsigned* sorted, int count, unsigned wanted)
{
    int first = 0, last = count;
    while (first < last) {
        int middle = first + (last - first) / 2;
        if (sorted[middle] < wanted)
            first = middle + 1;
        else
            last = middle;
    }
    return first;
}

__global__ void integers(const unsigned* numbers, const unsigned* sorted, unsigned* answers, int count)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const unsigned n = numbers[i];
        unsigned* out = answers + 10 * i;
        out[0] = gcd(n, 5040);
        out[1] = root(n);
        out[2] = power(n, n, 9973);
        out[3] = least_divisor(n);
        out[4] = collatz_steps(n);
        out[5] = digit_sum(n);
        out[6] = totient(n);
        out[7] = rho(n);
        out[8] = reversed(n, 16);
        out[9] = find(sorted, count, n);
    }
}
