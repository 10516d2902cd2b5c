// PTX that is not nvcc's: a loop with a poll, and one without. The PTX beside it is Debian clang 19.1.7's, with
// paths shortened and the sections of debug information cut off:
//
//     clang++-19 -x cuda --cuda-device-only --cuda-gpu-arch=sm_90 -nocudainc -nocudalib -O2 -gline-tables-only -S clang.cu -o clang.ptx
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
struct block { unsigned version, action, launch, pad; volatile unsigned* flag; };
extern "C" __device__ block cuinstr_control_v1 = {};

extern "C" __global__ void polled(const int* next, int* out, int at)
{
    int sum = 0;
    while (at >= 0) {
        unsigned flag;
        asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(flag) : "l"(cuinstr_control_v1.flag) : "memory");
        if (flag == cuinstr_control_v1.launch) asm volatile("exit;");
        sum += at;
        at = next[at];
    }
    *out = sum;
}
extern "C" __global__ void endless(const int* next, int* out, int at)
{
    int sum = 0;
    while (at >= 0) {
        sum += at;
        at = next[at];
    }
    *out = sum;
}
