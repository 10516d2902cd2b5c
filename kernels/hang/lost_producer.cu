//@ about: consumers wait for a ring buffer that the producer leaves one item short
//@ entry: pass_items
//@ grid: 2
//@ block: 64
//@ arg: i32[128] zero
//@ arg: i32 100
//@ tier: 1

constexpr int SLOTS = 8;

__global__ void pass_items(int *out, int items)
{
    __shared__ volatile int ring[SLOTS];
    __shared__ volatile int produced, consumed;

    if (threadIdx.x == 0)
        produced = consumed = 0;
    __syncthreads();

    if (threadIdx.x == 0) {             // the producer
        for (int i = 0; i < items - 1; ++i) {
            while (produced - consumed == SLOTS)
                ;
            ring[i % SLOTS] = i * i;
            __threadfence_block();
            produced = i + 1;
        }
    } else if (threadIdx.x == 32) {     // the consumer
        int sum = 0;
        for (int i = 0; i < items; ++i) {
            while (produced <= i)   // HANG
                ;
            __threadfence_block();
            sum += ring[i % SLOTS];
            consumed = i + 1;
        }
        out[blockIdx.x] = sum;
    }
}
