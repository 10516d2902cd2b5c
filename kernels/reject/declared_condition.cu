//@ about: a condition that declares its variable, and a body without braces: no place for a poll
//@ code: CI012
//@ severity: warning

__device__ int next(int *queue);

__global__ void drain(int *queue, int *out) {
    while (int item = next(queue))
        out[item] += 1;
}
