//@ about: template kernel with an unrolled loop over a non-type parameter, one explicit instance
//@ entry: box_filter
//@ grid: 40
//@ block: 128
//@ arg: i32[20000] mod 255
//@ arg: i64[20000] zero
//@ arg: i32 20000

template <typename T> struct Wide { using type = T; };
template <> struct Wide<int> { using type = long long; };

template <int N, typename T>
__device__ typename Wide<T>::type weighted(const T (&window)[N])
{
    typename Wide<T>::type sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i)
        sum += static_cast<typename Wide<T>::type>(window[i]) * (N / 2 + 1 - abs(i - N / 2));
    return sum;
}

template <typename T, int Radius>
__global__ void box_filter(const T *in, typename Wide<T>::type *out, int n)
{
    constexpr int width = 2 * Radius + 1;

    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        T window[width];
        #pragma unroll
        for (int k = 0; k < width; ++k) {
            const int j = i + k - Radius;
            window[k] = j >= 0 && j < n ? in[j] : T{};
        }
        out[i] = weighted<width>(window);
    }
}

template __global__ void box_filter<int, 4>(const int *, long long *, int);
