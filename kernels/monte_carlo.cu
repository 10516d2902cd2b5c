//@ about: dice until a six: hits of a counter-based generator, all in integers
//@ entry: roll_dice
//@ grid: 64
//@ block: 64
//@ arg: u32 2024
//@ arg: i32 40
//@ arg: u64[16] zero
//@ arg: u64[1] zero

struct Random
{
    unsigned long long state;

    __device__ Random(unsigned seed, unsigned stream) : state(seed)
    {
        state += stream * 0x9e3779b97f4a7c15ull;
        for (int warm = 0; warm < 4; ++warm)
            (*this)();
    }

    // splitmix64
    __device__ unsigned operator()()
    {
        unsigned long long z = (state += 0x9e3779b97f4a7c15ull);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
        return static_cast<unsigned>((z ^ (z >> 31)) >> 32);
    }

    // without the bias of a plain modulo
    __device__ unsigned below(unsigned n)
    {
        const unsigned limit = 0xffffffffu - 0xffffffffu % n;
        unsigned r;
        do { r = (*this)(); } while (r >= limit);
        return r % n;
    }
};

__global__ void roll_dice(unsigned seed, int games, unsigned long long *histogram, unsigned long long *total)
{
    __shared__ unsigned long long bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();

    Random random(seed, blockIdx.x * blockDim.x + threadIdx.x);
    unsigned rolls_of_all = 0;

    for (int game = 0; game < games; ++game)
    {
        unsigned rolls = 1;
        while (random.below(6) != 5)
            ++rolls;
        atomicAdd(&bins[min(rolls - 1, 15u)], 1ull);
        rolls_of_all += rolls;
    }

    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&histogram[threadIdx.x], bins[threadIdx.x]);
    atomicAdd(total, (unsigned long long)rolls_of_all);
}
