//@ about: an extern "C" block with a constant table; base64 of 3-byte groups (loop words in comments and strings)
//@ entry: base64_encode
//@ grid: 8
//@ block: 128
//@ arg: u8[7500] rand 38
//@ arg: i32 7500
//@ arg: u8[10000] zero
//@ arg: u32[2500] zero

extern "C" {

__constant__ char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Was:
 *     for (;;) { if (done) break; }
 *     while (i < n) i++;
 */
__constant__ char motto[] = R"text(while (true) { "for(;;)" })text" " do /* not a comment */ { } while (1);";

__global__ void base64_encode(const unsigned char *in, int size, unsigned char *out, unsigned *checks)
{
    const int groups = size / 3;    // do the tail elsewhere; while (0) is no loop

    for (int g = blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += gridDim.x * blockDim.x)
    {
        unsigned bits = 0;
        for (int k = 0; k < 3; k++) /* most significant byte first { */
            bits = bits << 8 | in[3 * g + k];

        for (int k = 3; k >= 0; k--, bits >>= 6)
            out[4 * g + k] = alphabet[bits & 63];

        unsigned check = '{';
        for (const char *m = motto; *m != '\0'; ++m)
            check = check * 31 + (*m == '}' || *m == '"' ? out[4 * g] : (unsigned char)*m); // }
        checks[g] = check;
    }
}

}   // extern "C"
