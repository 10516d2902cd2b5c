//@ about: writes terabytes behind the end of its buffer
//@ entry: out_of_bounds
//@ grid: 4
//@ block: 64
//@ arg: u32[256] zero
//@ arg: u32 64

extern "C" __global__ void out_of_bounds(unsigned *out, unsigned rows)
{
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned row = 0; row < rows; ++row)
        out[i + (size_t(row + 1) << 38)] = row;
}
