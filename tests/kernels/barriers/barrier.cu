//@ about: the barrier as its author wrote it
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE
#define BARRIER __syncthreads()

#include "rounds.cuh"
