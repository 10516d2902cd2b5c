//@ about: the loop is in a member of a class template, the kernel an instance of a template
//@ entry: march_rays
//@ grid: 2
//@ block: 64
//@ arg: f32[128] zero
//@ arg: f32 0.0
//@ tier: 1

template <typename T>
struct Ray
{
    T at, step;

    template <int Unroll>
    __device__ T march(T end, volatile T *trace)
    {
        while (at < end) {  // HANG
#pragma unroll
            for (int k = 0; k < Unroll; ++k)  // IN HANG
                at += step;
            *trace = at;
        }
        return at;
    }
};

template <typename T, int Unroll>
__global__ void march_rays(T *trace, T step)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    Ray<T> ray{ T(0), step };
    trace[i] = ray.template march<Unroll>(T(100), trace + i);
}

template __global__ void march_rays<float, 4>(float *, float);
