//@ about: loops without braces, empty bodies, loops under if and else, several on a line
//@ entry: text_marks
//@ grid: 3
//@ block: 64
//@ arg: u8[19200] mod 61
//@ arg: i32 100
//@ arg: i32[192] zero
//@ arg: i32[192] zero
//@ arg: i32[192] zero

typedef unsigned char byte;

__device__ int length_to(const byte *s, byte stop) { int n = 0; while (s[n] != stop && n < 99) ++n; return n; }
__device__ int popcount(unsigned x) { int n; for (n = 0; x; x &= x - 1, n++); return n; }

__global__ void text_marks(const byte *text, int width, int *spans, int *bits, int *turns)
{
    int tid = blockIdx.x * blockDim.x + threadIdx.x, n = 0, b = 0, i, j;
    const byte *line = text + tid * width;

    if (tid & 1) for (i = 0; i < width; i++) n += line[i] == 7; else for (i = width; i-- > 0;) n -= line[i] == 7;

    for (i = 0; i < width; ++i) if (line[i] > 30) b += popcount(line[i]); else if (line[i] < 3) break; else continue;

    for (i = 0, j = width - 1; i < j; ++i, --j)
        if (line[i] == line[j]) while (i < j && line[i] == line[j]) ++i, --j;
        else do if (line[i] < line[j]) ++i; else --j; while (i < j && line[i] != line[j]);

    for (i = 0; i < width && line[i] != 0; ++i)
        ;

    turns[tid] = j; spans[tid] = n + 1000 * length_to(line, 5) + 100000 * i; bits[tid] = b;
}
