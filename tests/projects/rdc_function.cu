__device__ int wait_elsewhere(volatile int* gate) {
    int turns = 0;
    while (*gate == 0) ++turns;  // ELSEWHERE
    return turns;
}
