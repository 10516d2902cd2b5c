//@ about: some warps hang in a loop, some at a barrier, some are done
//@ entry: three_fates
//@ grid: 6
//@ block: 96
//@ arg: u32[1] zero
//@ arg: u32[576] zero
//@ tier: 1

__global__ void three_fates(const volatile unsigned *go, unsigned *out)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned spins = 0;

    switch (threadIdx.x / 32) {
    case 0:
        out[i] = 1;
        return;
    case 1:
        while (!*go) // HANG
            spins++;
        break;
    default:
        break;
    }

    __syncthreads();
    out[i] = 2 + spins;
}
