// Loops in strips: an inner loop runs as many iterations as the distance to the end and an allowance permit, and behind it a poll stands
// that looks where the allowance is used up. Made by hand for the tests of the proof; the PTX beside it is nvcc 13.0's:
//
//     nvcc -ptx -arch=sm_90 -O3 strips.cu -o strips.ptx
struct block { unsigned version, action, launch, pad; volatile unsigned* flag; };
extern "C" __device__ block cuinstr_control_v1 = {};

static __device__ __forceinline__ void look() {
  unsigned flag;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(flag) : "l"(cuinstr_control_v1.flag) : "memory");
  if (flag == cuinstr_control_v1.launch) asm volatile("exit;");
}
// How many iterations of weight 2^s may run now, at least one if there is one to run. The empty assembly keeps the compiler from finding out
// what the number was made of, so that a rewritten exit test is one of this number.
static __device__ __forceinline__ unsigned take(unsigned& left, unsigned distance, unsigned s) {
  const unsigned most = (left >> s) + 1u;
  unsigned strip = distance < most ? distance : most;
  asm("" : "+r"(strip));
  const unsigned charge = strip << s;
  left = left > charge ? left - charge : 0u;
  return strip;
}
static __device__ __forceinline__ void turn(unsigned& left) {
  if (left == 0u) {
    look();
    left = 65536u;
  }
}

extern "C" __global__ void count_down(float* p, const float* q, int n) {
  unsigned left = 1024u;
  float s = 0;
  for (int k = 0; k < n; turn(left))
#pragma unroll 4
    for (unsigned t = take(left, (unsigned)n - (unsigned)k, 1u); t != 0u; --t, ++k) s += q[k] * p[k];
  p[0] = s;
}
extern "C" __global__ void nearer_bound(float* p, const float* q, int n) {
  unsigned left = 1024u;
  float s = 0;
  for (int k = 0; k < n; turn(left)) {
    const int limit = (int)((unsigned)k + take(left, (unsigned)n - (unsigned)k, 1u));
    for (; k < limit; ++k) s += q[k] * p[k];
  }
  p[0] = s;
}
extern "C" __global__ void not_the_bound(float* p, const float* q, int n) {
  unsigned left = 1024u;
  float s = 0;
  for (int k = 0; k < n; turn(left)) {
    const int limit = (int)((unsigned)k + take(left, (unsigned)n - (unsigned)k, 1u));
    for (; k != limit; ++k) s += q[k] * p[k];
  }
  p[0] = s;
}
extern "C" __global__ void sixty_four_bits(float* p, const float* q, long long from, long long n) {
  unsigned left = 1024u;
  float s = 0;
  for (long long k = from; k < n; turn(left)) {
    const unsigned long long far = (unsigned long long)n - (unsigned long long)k;
    for (unsigned t = take(left, far < 0xffffffffull ? (unsigned)far : 0xffffffffu, 1u); t != 0u; --t, ++k) s += q[k] * p[k];
  }
  p[0] = s;
}
extern "C" __global__ void less_or_equal(float* p, const float* q, int a, int n) {
  unsigned left = 1024u;
  float s = 0;
  for (int k = a; k <= n; turn(left)) {
    const unsigned far = (unsigned)n - (unsigned)k;
    for (unsigned t = take(left, far < 0xffffffffu ? far + 1u : far, 0u); t != 0u; --t, ++k) s += q[k] * p[k];
  }
  p[0] = s;
}
extern "C" __global__ void downward(float* p, const float* q, int a, int n) {
  unsigned left = 1024u;
  float s = 0;
  for (int k = n; k > a; turn(left))
    for (unsigned t = take(left, (unsigned)k - (unsigned)a, 3u); t != 0u; --t, --k) s += q[k] * p[k];
  p[0] = s;
}
extern "C" __global__ void pointers(float* p, const float* q, const float* end) {
  unsigned left = 1024u;
  float s = 0;
  for (; q != end; turn(left))
    for (unsigned t = take(left, 0xffffffffu, 2u); t != 0u && q != end; --t, ++q) s += *q;
  p[0] = s;
}
extern "C" __global__ void stride(float* p, const float* q, int n) {
  unsigned left = 1024u;
  const int step = gridDim.x * blockDim.x;
  for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; turn(left)) {
    const unsigned far = step > 0 ? ((unsigned)n - (unsigned)k - 1u) / (unsigned)step + 1u : 0xffffffffu;
    for (unsigned t = take(left, far, 2u); t != 0u && k < n; --t, k += step) p[k] += q[k];
  }
}
extern "C" __global__ void nested(float* p, const float* q, int m, int n) {
  unsigned left = 1024u;
  for (int r = 0; r < m; turn(left))
    for (unsigned u = take(left, (unsigned)m - (unsigned)r, 3u); u != 0u; --u, ++r) {
      float s = 0;
      for (int k = 0; k < n; turn(left))
        for (unsigned t = take(left, (unsigned)n - (unsigned)k, 1u); t != 0u; --t, ++k) s += q[r * n + k] * p[k];
      p[r] = s;
    }
}
extern "C" __global__ void nested_bounds(float* p, const float* q, int m, int n) {
  unsigned left = 1024u;
  for (int r = 0; r < m; turn(left)) {
    const int end = (int)((unsigned)r + take(left, (unsigned)m - (unsigned)r, 3u));
    for (; r < end; ++r) {
      float s = 0;
      for (int k = 0; k < n; turn(left)) {
        const int limit = (int)((unsigned)k + take(left, (unsigned)n - (unsigned)k, 1u));
        for (; k < limit; ++k) s += q[r * n + k] * p[k];
      }
      p[r] = s;
    }
  }
}
extern "C" __global__ void leaves_early(int* p, const int* q, int n) {
  unsigned left = 1024u;
  int k = 0;
  for (; k < n; turn(left)) {
    const int limit = (int)((unsigned)k + take(left, (unsigned)n - (unsigned)k, 1u));
    for (; k < limit; ++k)
      if (q[k] == 7) goto out;
  }
out:
  p[0] = k;
}
extern "C" __global__ void chunks_of_a_list(const int* next, int* out, int at) {
  int sum = 0;
  for (; at >= 0; look())
#pragma unroll 4
    for (unsigned t = 64u; t != 0u && at >= 0; --t) {
      sum += at;
      at = next[at];
    }
  out[0] = sum;
}
extern "C" __global__ void chunks_of_a_wait(volatile unsigned* p) {
  for (; *p != 1u; look())
    for (unsigned t = 64u; t != 0u && *p != 1u; --t) p[1] = t;
}
