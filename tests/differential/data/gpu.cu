// Runs the programs of all batches on this machine's GPU and compares what they did with what the host's plain programs did, whose lines
// are in the file named first; writes what came of it to the file named second, as JSON, after so many seconds as the third says at the latest. The fourth is
// the number of files that the compiler refused.
// Ends with 0 if nothing differs but what was broken on purpose, 1 if something does, 2 if nothing could be run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu.h"

gpu_batch* gpu_batches = nullptr;

namespace {
// The most iterations of loops that poll between two looks of an activation: the promise of all forms.
constexpr unsigned long long promised = 1ull << 16;
// A program is over in milliseconds; what takes this long hangs.
constexpr double hang_s = 30.0;
// So many differences are listed.
constexpr size_t listed = 50;

typedef std::chrono::steady_clock Clock;
const Clock::time_point begin = Clock::now();
double seconds() { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Expected {
  std::string status;
  unsigned long long hash, ticks;
};
std::map<std::pair<unsigned long long, unsigned int>, Expected> expected;

// What came of a lane.
struct Lane {
  unsigned long long runs = 0, cut = 0, undefined = 0, different = 0, looks = 0, ticks = 0;
  unsigned long long most_iterations = 0, most_iterations_seed = 0, most_ns = 0, most_ns_seed = 0;
  std::set<unsigned long long> programs;
};
// What a worker does, and since when; the seconds are negative where it does nothing.
struct Work {
  std::atomic<unsigned long long> seed{0};
  std::atomic<const char*> lane{nullptr};
  std::atomic<double> since{-1.0};
};
std::mutex lock;
std::map<std::string, Lane> lanes;
std::vector<std::string> differences;
std::vector<gpu_batch*> batches;
std::atomic<size_t> next_batch{0}, done_batches{0};
std::string device_name;
const char* results;
int refused = 0;

void tell(const std::string& what) {
  printf("%s\n", what.c_str());
  if (differences.size() < listed) differences.push_back(what);
}

// Lanes in which something is broken on purpose: each must be found to differ.
bool is_broken(const char* lane) { return strncmp(lane, "broken", 6) == 0; }

// Writes the results and ends the process, since a kernel may be on the GPU that never ends. With `lock` held.
[[noreturn]] void finish(const char* broken) {
  unsigned long long wrong = 0, runs = 0;
  std::set<unsigned long long> programs;
  FILE* file = fopen(results, "w");
  if (file == nullptr) {
    fprintf(stderr, "%s can't be written\n", results);
    _Exit(2);
  }
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  fprintf(file, "{\n  \"device\": \"%s\",\n  \"cuda_driver\": %d,\n  \"cuda_runtime\": %d,\n  \"lanes\": {", device_name.c_str(), driver, runtime);
  const char* comma = "";
  for (const auto& [name, lane] : lanes) {
    fprintf(file,
            "%s\n    \"%s\": {\"programs\": %zu, \"runs\": %llu, \"different\": %llu, \"cut\": %llu, \"undefined\": %llu, \"iterations\": %llu, "
            "\"looks\": %llu, \"most_iterations_between_looks\": %llu, \"most_iterations_seed\": %llu, \"most_microseconds_between_looks\": %.1f, "
            "\"most_microseconds_seed\": %llu}",
            comma, name.c_str(), lane.programs.size(), lane.runs, lane.different, lane.cut, lane.undefined, lane.ticks, lane.looks, lane.most_iterations,
            lane.most_iterations_seed, (double)lane.most_ns / 1000.0, lane.most_ns_seed);
    comma = ",";
    if (is_broken(name.c_str())) continue;
    runs += lane.runs;
    wrong += lane.different;
    programs.insert(lane.programs.begin(), lane.programs.end());
  }
  // Where a comparison can't fail, nothing was compared.
  bool blind = lanes["broken on purpose"].different == 0;
  if (blind) tell("the lane that is broken on purpose does not differ");
  for (const auto& [name, lane] : lanes) {
    if (!is_broken(name.c_str()) || lane.different != 0) continue;
    if (name != "broken on purpose") tell("the lane `" + name + "` does not differ");
    blind = true;
  }
  if (broken != nullptr) tell(broken);
  const bool right = wrong == 0 && runs != 0 && refused == 0 && !blind && broken == nullptr;
  fprintf(file,
          "\n  },\n  \"programs\": %zu,\n  \"runs\": %llu,\n  \"different\": %llu,\n  \"batches_in_time\": %zu,\n  \"batches\": %zu,\n  \"refused_by_nvcc\": %d,\n  \"seconds\": %.1f,\n"
          "  \"promised_iterations_between_looks\": %llu,\n  \"right\": %s,\n  \"differences\": [",
          programs.size(), runs, wrong, done_batches.load(), batches.size(), refused, seconds(), promised, right ? "true" : "false");
  comma = "";
  for (const std::string& difference : differences) {
    fprintf(file, "%s\n    \"%s\"", comma, difference.c_str());
    comma = ",";
  }
  fprintf(file, "\n  ]\n}\n");
  fclose(file);
  printf("%zu programs, %llu runs on the GPU, %llu differ from the host's, %.0f s\n", programs.size(), runs, wrong, seconds());
  fflush(stdout);
  _Exit(right ? 0 : 1);
}

std::string named(unsigned long long seed, const char* lane, unsigned int set) {
  return "seed " + std::to_string(seed) + ", " + lane + ", arguments " + std::to_string(set) + ": ";
}

// One run of a program; its trace is compared, and what lies between its looks.
void run(const gpu_batch& batch, const host_program& program, unsigned int set, const Expected& plain, int* device, Lane& lane) {
  int memory[64];
  host_arguments given = arguments(program.seed, set, memory);
  given.p = device;
  gpu_state state = {};
  cudaError_t error = cudaMemcpy(device, memory, sizeof memory, cudaMemcpyHostToDevice);
  if (error == cudaSuccess) error = batch.reset(program);
  if (error == cudaSuccess) {
    program.run(given);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) error = cudaStreamSynchronize(cudaStreamPerThread);
  if (error == cudaSuccess) error = batch.result(state);
  if (error == cudaSuccess) error = cudaMemcpy(memory, device, sizeof memory, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) {
    const std::lock_guard<std::mutex> guard(lock);
    finish((named(program.seed, batch.lane, set) + cudaGetErrorString(error)).c_str());
  }
  unsigned long long hash = state.hash;
  for (const int word : memory) hash = mixed(hash, (unsigned int)word);
  const char* status = state.is_cut ? "cut0" : "end0";
  ++lane.runs;
  lane.cut += state.is_cut;
  lane.looks += state.looks;
  lane.ticks += state.ticks;
  lane.programs.insert(program.seed);
  if (program.single && state.most_iterations > lane.most_iterations) {
    lane.most_iterations = state.most_iterations;
    lane.most_iterations_seed = program.seed;
  }
  if (state.most_ns > lane.most_ns) {
    lane.most_ns = state.most_ns;
    lane.most_ns_seed = program.seed;
  }
  char why[256] = "";
  if (hash != plain.hash || state.ticks != plain.ticks || plain.status != status) {
    snprintf(why, sizeof why, "%s after %llu iterations (trace %llx), not %s after %llu (trace %llx)", status, state.ticks, hash, plain.status.c_str(),
             plain.ticks, plain.hash);
  } else if (program.single && state.most_iterations > promised) {
    snprintf(why, sizeof why, "%llu iterations without a look", state.most_iterations);
  }
  if (why[0] == 0) return;
  ++lane.different;
  if (is_broken(batch.lane)) return;
  const std::lock_guard<std::mutex> guard(lock);
  tell(named(program.seed, batch.lane, set) + why);
}

// Batches one after another, each of which has its own state on the GPU, in this thread's stream.
void work(Work& now, double limit) {
  int* device = nullptr;
  if (cudaMalloc(&device, 64 * sizeof(int)) != cudaSuccess) {
    const std::lock_guard<std::mutex> guard(lock);
    finish("no memory on the GPU");
  }
  for (size_t index = next_batch++; index < batches.size() && seconds() < limit; index = next_batch++) {
    const gpu_batch& batch = *batches[index];
    Lane lane;
    now.lane = batch.lane;
    for (unsigned int at = 0; at < batch.count; ++at) {
      const host_program& program = batch.programs[at];
      for (unsigned int set = 0; set < 8; ++set) {
        const auto found = expected.find({program.seed, set});
        if (found == expected.end()) continue;
        if (found->second.status.rfind("undefined", 0) == 0) {
          ++lane.undefined;
          continue;
        }
        now.seed = program.seed;
        now.since = seconds();
        run(batch, program, set, found->second, device, lane);
        now.since = -1.0;
      }
    }
    const std::lock_guard<std::mutex> guard(lock);
    Lane& sum = lanes[batch.lane];
    sum.runs += lane.runs;
    sum.cut += lane.cut;
    sum.undefined += lane.undefined;
    sum.different += lane.different;
    sum.looks += lane.looks;
    sum.ticks += lane.ticks;
    if (lane.most_iterations > sum.most_iterations) {
      sum.most_iterations = lane.most_iterations;
      sum.most_iterations_seed = lane.most_iterations_seed;
    }
    if (lane.most_ns > sum.most_ns) {
      sum.most_ns = lane.most_ns;
      sum.most_ns_seed = lane.most_ns_seed;
    }
    sum.programs.insert(lane.programs.begin(), lane.programs.end());
    ++done_batches;
  }
  now.since = -2.0;
}
}  // namespace

int main(int count, char** values) {
  FILE* file = count > 4 ? fopen(values[1], "r") : nullptr;
  if (file == nullptr) {
    fprintf(stderr, "usage: differential EXPECTED RESULTS SECONDS REFUSED; gpu-run beside it does this\n");
    return 2;
  }
  results = values[2];
  const double limit = atof(values[3]);
  refused = atoi(values[4]);
  char line[256], status[32];
  unsigned long long seed, hash, ticks;
  unsigned int set;
  while (fgets(line, sizeof line, file) != nullptr) {
    if (sscanf(line, "%llu %u whole 0 %31s %llx %llu", &seed, &set, status, &hash, &ticks) == 5) expected[{seed, set}] = {status, hash, ticks};
  }
  cudaDeviceProp device = {};
  if (cudaGetDeviceProperties(&device, 0) != cudaSuccess) {
    fprintf(stderr, "there is no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
    return 2;
  }
  device_name = device.name;
  for (gpu_batch* batch = gpu_batches; batch != nullptr; batch = batch->next) batches.push_back(batch);
  // What was broken on purpose comes first, so that it is run however short the time is.
  std::stable_partition(batches.begin(), batches.end(), [](const gpu_batch* batch) { return is_broken(batch->lane); });
  const unsigned int cores = std::thread::hardware_concurrency();
  const size_t workers = std::min<size_t>(cores > 1 ? cores : 2, batches.size());
  std::vector<Work> works(workers);
  std::vector<std::thread> threads;
  for (Work& now : works) threads.emplace_back(work, std::ref(now), limit);
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    bool all_done = true;
    for (Work& now : works) {
      const double since = now.since;
      all_done = all_done && since == -2.0;
      if (since >= 0.0 && seconds() - since > hang_s) {
        const std::lock_guard<std::mutex> guard(lock);
        finish(("seed " + std::to_string(now.seed) + ", " + now.lane.load() + ": hangs").c_str());
      }
    }
    if (all_done) break;
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard<std::mutex> guard(lock);
  finish(nullptr);
}
