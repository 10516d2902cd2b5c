//@ about: five nested loops of ordinary bounds: 10^20 rounds
//@ entry: search_exponents
//@ grid: 2
//@ block: 64
//@ arg: i32 10000
//@ arg: u32[128] zero
//@ tier: 1

__global__ void search_exponents(int n, volatile unsigned *best)
{
    const int tid = blockIdx.x * blockDim.x + threadIdx.x;

    for (int a = 1; a <= n; ++a)
        for (int b = 1; b <= n; ++b)
            for (int c = 1; c <= n; ++c)
                for (int d = 1; d <= n; ++d)
                    for (int e = 1; e <= n; ++e) // HANG
                    {
                        const int h = (a * 31 ^ b * 37 ^ c * 41 ^ d * 43 ^ e) & 4095;
                        if (h == tid)
                            best[tid] = h;
                    }
}
