// Loads a file of PTX as a library, and says what each call about it gives: refused FILE. The driver may compile it as late as at the first look-up.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fstream>
#include <iterator>
#include <string>

template <class Function>
Function* driver(const char* name, unsigned version = 12000) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result;
  cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result);
  return (Function*)found;
}

int main(int, char** words) {
  std::ifstream file(words[1]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  unsigned* out;
  cudaMalloc(&out, 1 << 20);
  cudaMemset(out, 0, 1 << 20);
  CUlibrary library = nullptr;
  int status = driver<decltype(cuLibraryLoadData)>("cuLibraryLoadData")(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  printf("result load %d\n", status);
  if (status != 0) return 0;
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  unsigned value = 0;
  status = driver<decltype(cuLibraryGetGlobal)>("cuLibraryGetGlobal")(&variable, &bytes, library, "answer");
  if (status == 0) cudaMemcpy(&value, (void*)variable, sizeof value, cudaMemcpyDeviceToHost);
  printf("result variable %d %zu %u\n", status, bytes, value);
  CUkernel kernel = nullptr;
  status = driver<decltype(cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, library, "deep");
  printf("result kernel %d\n", status);
  CUfunction function = nullptr;
  if (status == 0) status = driver<decltype(cuKernelGetFunction)>("cuKernelGetFunction")(&function, kernel);
  printf("result function %d\n", status);
  if (status == 0) {
    unsigned rounds = 3;
    unsigned long long zero = 0;
    void* arguments[] = {&out, &rounds, &zero, &zero};
    status = driver<decltype(cuLaunchKernel)>("cuLaunchKernel")(function, 1, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr);
    printf("result launch %d\n", status);
    printf("result end %d\n", (int)cudaDeviceSynchronize());
  }
  printf("result unload %d\n", (int)driver<decltype(cuLibraryUnload)>("cuLibraryUnload")(library));
}
