//@ about: the warp's leader loops while its 31 neighbours wait at __syncwarp
//@ entry: leader_waits
//@ grid: 2
//@ block: 64
//@ arg: u32[128] zero
//@ arg: u32[128] zero
//@ tier: 1

__global__ void leader_waits(volatile unsigned *tickets, unsigned *seen)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned lane = threadIdx.x % 32;

    if (lane == 0)
        for (unsigned turn = 1; turn > 0; turn |= 1)    // HANG
            tickets[tid] = turn;
    __syncwarp();

    seen[tid] = tickets[tid - lane];
}
