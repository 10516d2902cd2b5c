// Two processes, as ranks of a job. The second one's kernel never ends; the first one's waits for it, as a collective does.
#include <cstdio>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void ncclDevKernel_wait(volatile int* come) {
  while (*come == 0) {
  }
}

__global__ void spin(volatile int* flag) {
  while (*flag == 0) {  // the hang
  }
}

int main() {
  int* shared = (int*)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const pid_t second = fork();
  const char* rank = second != 0 ? "first" : "second";
  int *come, *flag;
  cudaHostRegister(shared, 4096, cudaHostRegisterMapped);
  cudaHostGetDevicePointer((void**)&come, shared, 0);
  cudaMalloc(&flag, 4);
  cudaMemset(flag, 0, 4);
  printf("%s is %d\n", rank, getpid());
  fflush(stdout);
  if (second != 0) ncclDevKernel_wait<<<1, 32>>>(come);
  else spin<<<1, 32>>>(flag);
  const cudaError_t done = cudaDeviceSynchronize();
  if (second == 0) *(volatile int*)shared = 1;
  printf("%s %s\n", rank, cudaGetErrorName(done));
  fflush(stdout);
  if (second != 0) waitpid(second, nullptr, 0);
  return 0;
}
