//@ about: persistent blocks take tasks of uneven length from a queue
//@ entry: work_queue
//@ grid: 1056
//@ block: 128
//@ min-arch: 80
//@ reset: yes
//@ arg: i32[1] zero
//@ arg: i32 65536
//@ arg: u32[65536] zero
//@ arg: i32 512
//@ long: arg 1 i32 500000000
//@ long: arg 2 u32[500000000] zero

// A task is a hash of hashes: between one and `longest` rounds, as its number says.
__global__ void work_queue(int *head, int tasks, unsigned *results, int longest)
{
    __shared__ int task;
    __shared__ unsigned parts[4];

    while (true) {
        if (threadIdx.x == 0) task = atomicAdd(head, 1);
        __syncthreads();
        const int mine = task;
        if (mine >= tasks) break;

        unsigned state = mine * 747796405u + 2891336453u;
        const int rounds = 1 + (state >> 8) % longest;
        state += threadIdx.x;
        for (int r = 0; r < rounds; ++r) {
            state = state * 747796405u + 2891336453u;
            state ^= state >> ((state >> 28) + 4);
        }

        unsigned sum = __reduce_add_sync(0xffffffffu, state);
        if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) results[mine] = parts[0] + parts[1] + parts[2] + parts[3];
    }
}
