//@ about: counts the words of its shared memory that hold what another kernel left there
//@ entry: finds_shared
//@ grid: 1024
//@ block: 256
//@ arg: u32[1] zero
//@ arg: u32 1668640370

extern "C" __global__ void finds_shared(unsigned *found, unsigned word)
{
    // Never written: a multiprocessor's memory holds what was there.
    __shared__ volatile unsigned room[256];
    if (room[threadIdx.x] == word)
        atomicAdd(found, 1u);
}
