// Runs the programs of all batches on this machine's GPU and compares what they did with what the host's plain programs did, whose lines
// are in the file named first. Ends with 0 if nothing differs, 1 if something does, 2 if nothing could be run.
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <utility>

#include "gpu.h"

gpu_batch* gpu_batches = nullptr;

namespace {
struct Expected {
  std::string status;
  unsigned long long hash, ticks;
};
}  // namespace

int main(int count, char** values) {
  FILE* file = count > 1 ? fopen(values[1], "r") : nullptr;
  if (file == nullptr) {
    fprintf(stderr, "usage: differential FILE, which the same command wrote that compiled it\n");
    return 2;
  }
  std::map<std::pair<unsigned long long, unsigned int>, Expected> expected;
  char line[256], status[32];
  unsigned long long seed, hash, ticks;
  unsigned int set;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (sscanf(line, "%llu %u whole 0 %31s %llx %llu", &seed, &set, status, &hash, &ticks) == 5) expected[{seed, set}] = {status, hash, ticks};
  }
  int* device = nullptr;
  if (cudaMalloc(&device, 64 * sizeof(int)) != cudaSuccess) {
    fprintf(stderr, "there is no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 2;
  }
  unsigned int runs = 0, wrong = 0, cut = 0;
  const clock_t since = clock();
  for (gpu_batch* batch = gpu_batches; batch != nullptr; batch = batch->next) {
    for (unsigned int index = 0; index < batch->count; ++index) {
      const host_program& program = batch->programs[index];
      for (unsigned int set = 0; set < 8; ++set) {
        const auto found = expected.find({program.seed, set});
        if (found == expected.end() || found->second.status == "undefined0") continue;
        int memory[64];
        host_arguments given = arguments(program.seed, set, memory);
        given.p = device;
        cudaMemcpy(device, memory, sizeof memory, cudaMemcpyHostToDevice);
        batch->reset(program.budget);
        program.run(given);
        const cudaError_t error = cudaDeviceSynchronize();
        if (error != cudaSuccess) {
          printf("seed %llu, %s, arguments %u: %s\n", program.seed, batch->lane, set, cudaGetErrorString(error));
          return 1;
        }
        const gpu_state state = batch->result();
        cudaMemcpy(memory, device, sizeof memory, cudaMemcpyDeviceToHost);
        unsigned long long hash = state.hash;
        for (const int word : memory) hash = mixed(hash, (unsigned int)word);
        const char* status = state.is_cut ? "cut0" : "end0";
        ++runs;
        cut += state.is_cut;
        if (hash != found->second.hash || state.ticks != found->second.ticks || found->second.status != status) {
          ++wrong;
          printf("seed %llu, %s, arguments %u: %s after %llu iterations (trace %llx), not %s after %llu (trace %llx)\n", program.seed, batch->lane, set,
                 status, state.ticks, hash, found->second.status.c_str(), found->second.ticks, found->second.hash);
        }
      }
    }
  }
  printf("%u runs on the GPU, %u of them cut, %u differ from the host's, %.0f s of the processor\n", runs, cut, wrong, (double)(clock() - since) / CLOCKS_PER_SEC);
  return wrong == 0 && runs != 0 ? 0 : 1;
}
