//@ about: loops that the compiler makes: objects of a number that the run knows, and bytes
//@ code: CI019
//@ severity: warning
struct Particle {
  float x, y, z;
  __device__ Particle() : x(threadIdx.x), y(blockIdx.x), z(1.0f) {}
};

__global__ void compiler_loop(Particle **out, const char *from, char *to, size_t count) {
  out[threadIdx.x] = new Particle[count];
  memcpy(to, from, count);
  memcpy(to + count, from, sizeof(Particle));
}
