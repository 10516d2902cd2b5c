//@ about: batched tridiagonal systems, a class with members that loop, references and pointers to arrays
//@ entry: solve_systems
//@ grid: 6
//@ block: 32
//@ arg: f64[6000] rand 39
//@ arg: f64[6000] zero
//@ arg: i32 187
//@ arg: i32 32

// -x[i-1] + 4 x[i] - x[i+1] = b[i], by Thomas' algorithm
template<int MaxSize>
class Thomas
{
    double upper_[MaxSize];
    int size_;

public:
    explicit __device__ Thomas(int size): size_{size}
    {
        upper_[0] = -0.25;
        for(int i = 1; i < size_; ++i) { upper_[i] = -1.0 / (4.0 + upper_[i - 1]); }
    }

    __device__ void solve(const double* b, double* x) const
    {
        x[0] = b[0] / 4.0;
        for(int i = 1; i < size_; ++i)
        {
            x[i] = (b[i] + x[i - 1]) * -upper_[i];
        }
        for(int i = size_ - 2; i >= 0; --i)
        {
            x[i] -= upper_[i] * x[i + 1];
        }
    }
};

__global__ void solve_systems(const double* b, double* x, int systems, int size)
{
    const Thomas<32> thomas{size};

    int system = blockIdx.x * blockDim.x + threadIdx.x;
    if(system < systems)
    {
        thomas.solve(b + system * size, x + system * size);
    }
}
