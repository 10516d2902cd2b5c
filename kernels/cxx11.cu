//@ about: C++11 and nothing later
//@ entry: lcs_lengths
//@ std: 11
//@ grid: 6
//@ block: 32
//@ arg: u8[9600] mod 7
//@ arg: u8[9600] mod 5
//@ arg: i32 50
//@ arg: i32[192] zero

constexpr int max_length = 64;

constexpr __host__ __device__ int larger(int a, int b) { return a > b ? a : b; }

// sizes below are powers of two, checked the C++11 way
constexpr __host__ __device__ bool power_of_two(int n) { return n == 1 || (n % 2 == 0 && power_of_two(n / 2)); }
static_assert(power_of_two(max_length), "max_length");

template <typename T>
__device__ auto lcs(const T *a, const T *b, int n) -> decltype(n)
{
    int line[max_length + 1] = {};
    for (auto i = 0; i < n; ++i) {
        int diagonal = 0;
        for (auto j = 1; j <= n; ++j) {
            const auto above = line[j];
            line[j] = a[i] == b[j - 1] ? diagonal + 1 : larger(line[j], line[j - 1]);
            diagonal = above;
        }
    }
    return line[n];
}

__global__ void lcs_lengths(const unsigned char *a, const unsigned char *b, int n, int *length)
{
    if (a == nullptr || n > max_length) return;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    length[i] = lcs(a + i * n, b + i * n, n);
}
