//@ about: a constexpr function with a loop, for a static_assert and for a kernel (CRC-32)
//@ entry: crc_lines
//@ grid: 4
//@ block: 64
//@ arg: u8[25600] rand 30
//@ arg: i32 100
//@ arg: u32[256] zero

constexpr __host__ __device__ unsigned crc_byte(unsigned crc)
{
    for (int bit = 0; bit < 8; ++bit)
        crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    return crc;
}

template <unsigned N>
constexpr __host__ __device__ unsigned crc_text(const char (&text)[N])
{
    unsigned crc = ~0u;
    for (unsigned i = 0; i + 1 < N; ++i)
        crc = crc >> 8 ^ crc_byte((crc ^ static_cast<unsigned char>(text[i])) & 0xff);
    return ~crc;
}

static_assert(crc_byte(1) == 0x77073096u, "second entry of the table");
static_assert(crc_text("123456789") == 0xcbf43926u, "the check value");

__global__ void crc_lines(const unsigned char *text, int line_length, unsigned *crcs)
{
    __shared__ unsigned table[256];

    for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
        table[i] = crc_byte(i);
    __syncthreads();

    const int line = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned char *p = text + line * line_length, *const end = p + line_length;

    unsigned crc = ~0u;
    while (p != end)
        crc = crc >> 8 ^ table[(crc ^ *p++) & 0xff];
    crcs[line] = ~crc;
}
