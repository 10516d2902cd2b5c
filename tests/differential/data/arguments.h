// What a run of a program is given, and how its trace is hashed: the same on the host and on a GPU.
#pragma once
#include <limits.h>

// What the arguments of a program's kernel are.
struct host_arguments {
  int n;
  unsigned int u;
  long long w;
  int s;
  unsigned char b;
  int* p;
};
// A program as the table at the end of a batch lists it.
struct host_program {
  unsigned long long seed;
  void (*run)(const host_arguments&);
  unsigned int budget;
  // For each iteration's site, whether the loop polls for itself; and how many sites there are.
  const unsigned char* polled;
  unsigned int sites;
  // Whether all its loops share one allowance.
  bool single;
};

inline unsigned long long next_random(unsigned long long& state) {
  state += 0x9e3779b97f4a7c15ull;
  unsigned long long mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
  return mixed ^ (mixed >> 31);
}

constexpr unsigned long long first_hash = 0xcbf29ce484222325ull;
#ifdef __CUDACC__
__host__ __device__
#endif
inline unsigned long long mixed(unsigned long long hash, unsigned long long value) { return (hash ^ value) * 0x100000001b3ull + (hash >> 47); }

// The arguments of a set, and the memory that `p` points to.
inline host_arguments arguments(unsigned long long seed, unsigned int set, int (&memory)[64]) {
  unsigned long long state = seed * 8u + set;
  const long long special[] = {0, 1, -1, 2, 7, 16, 127, 128, 255, 256, 32767, 65535, 65536, 100000, INT_MAX, INT_MIN, 0x80000000ll, 0xffffffffll};
  auto number = [&]() -> long long {
    const unsigned long long kind = next_random(state) % 8;
    if (kind < 5) return (long long)(next_random(state) % 24);
    if (kind == 5) return (long long)(next_random(state) % 7) - 3;
    return special[next_random(state) % (sizeof special / sizeof *special)];
  };
  host_arguments result = {};
  result.n = (int)number();
  result.u = (unsigned int)number();
  result.w = number();
  const long long steps[] = {0, 1, 1, 1, 2, 2, 3, -1, -2, 5, 16};
  result.s = (int)steps[next_random(state) % (sizeof steps / sizeof *steps)];
  result.b = (unsigned char)number();
  for (int& word : memory) word = (int)(next_random(state) % 32);
  memory[12 + next_random(state) % 8] = 0;
  memory[63] = 0;
  result.p = memory;
  return result;
}

