//@ about: leaves one word all over shared memory, for kernels that come after it to find in theirs
//@ entry: fills_shared
//@ grid: 2048
//@ block: 256
//@ shared: 49152
//@ arg: u32 1668640370
//@ arg: u32 12288

extern "C" __global__ void fills_shared(unsigned word, unsigned words)
{
    extern __shared__ volatile unsigned room[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x)
        room[i] = word;
    // So that blocks fill every multiprocessor at once.
    __nanosleep(20000);
}
