//@ about: C++20: a constrained template lambda, range-for with an initializer, designated initializers
//@ entry: bucket_means
//@ std: 20
//@ grid: 5
//@ block: 64
//@ arg: i32[25600] mod 10007
//@ arg: i32 80
//@ arg: i32[320] zero
//@ arg: i32[320] zero

template <typename T>
concept Number = requires(T a) { a + a; a / 2; };

struct Buckets { int limit[4]; };

__global__ void bucket_means(const int *values, int per_thread, int *mean, int *bucket)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    const int *mine = values + tid * per_thread;

    auto average = []<Number T>(const T *p, int n) {
        long long sum = 0;
        for (int i = 0; i < n; ++i) [[likely]]
            sum += p[i];
        return static_cast<T>(sum / n);
    };
    const int m = average(mine, per_thread);

    int which = 0;
    for (Buckets b{ .limit = { 4500, 5000, 5100, 5500 } }; int limit : b.limit)
        which += m >= limit;

    mean[tid] = m;
    bucket[tid] = which;
}
