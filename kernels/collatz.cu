//@ about: Collatz steps and peaks (the file starts with a byte order mark)
//@ entry: collatz
//@ grid: 128
//@ block: 128
//@ arg: u64 1000001
//@ arg: i32[16384] zero
//@ arg: u64[16384] zero

// Schritte und Höchstwert der Folge n → n/2 oder 3n+1, bis 1 erreicht ist.
__global__ void collatz(unsigned long long first, int *steps, unsigned long long *peak)
{
    const unsigned tid = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long n = first + tid, top = n;
    int count = 0;

    while (n != 1)
    {
        n = (n & 1) ? 3 * n + 1 : n >> 1;
        if (n > top) top = n;
        ++count;
    }

    steps[tid] = count;
    peak[tid]  = top;
}
