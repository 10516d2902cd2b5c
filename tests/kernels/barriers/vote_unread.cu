//@ about: a vote in its place, whose result nobody reads
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE
#define BARRIER __syncthreads_or(0)

#include "rounds.cuh"
