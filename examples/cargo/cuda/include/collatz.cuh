#pragma once

__host__ __device__ inline unsigned collatz(unsigned number) {
  unsigned steps = 0;
  while (number != 1) {
    number = number % 2 ? 3 * number + 1 : number / 2;
    ++steps;
  }
  return steps;
}
