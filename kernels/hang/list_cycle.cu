//@ about: a linked list with a cycle
//@ entry: list_sums
//@ grid: 2
//@ block: 64
//@ arg: i32[2048] mod 2048
//@ arg: i32[2048] mod 100
//@ arg: i32[128] zero
//@ tier: 1

constexpr int END = -1;

__global__ void list_sums(const int *next, const int *value, volatile int *sum)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;

    for (int node = tid; node != END; node = next[node]) {  // HANG
        sum[tid] = sum[tid] ^ value[node];
    }
}
