//@ about: a vote in its place, and threads leave if anybody is for it
//@ entry: experiment
//@ grid: 1056
//@ block: 256
//@ arg: i32 2048
//@ arg: i32 0
//@ arg: i32 0
//@ arg: i32[270336] zero

#define PREPARE
#define BARRIER \
    if (__syncthreads_or(stay)) asm volatile("exit;")

#include "rounds.cuh"
