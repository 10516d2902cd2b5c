// A hang, its report, and the next launch in the same context on the same memory, in C++ with the CUDA runtime.
//
//     cuinstr halve.cu -o halve.inst.cu
//     nvcc -std=c++17 -arch=native stop_a_hang_cpp.cu -lcuinstr -o stop_a_hang_cpp && ./stop_a_hang_cpp
#include "halve.inst.cu"
#include <cuinstr.hpp>
#include <cstdio>
#include <fstream>
#include <iterator>

int main(int, char **argv) try {
    unsigned numbers[2][3] = {{7, 1000, 0}, {7, 1000, 4}};  // the zero hangs
    unsigned *memory = nullptr;
    if (cudaError_t error = cudaMalloc(&memory, sizeof numbers[0])) {
        std::fprintf(stderr, "no memory on a GPU: %s\n", cudaGetErrorString(error));
        return 1;
    }

    // For the line in the report: this program is what the kernel was loaded from.
    std::ifstream file(argv[0], std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), {});
    const cuinstr_about about = {sizeof about, 0, image.data(), image.size(), "halve", "."};
    cuinstr::module module = cuinstr::module::of_kernel(halve, &about);
    for (int round = 0; round < 2; ++round) {
        cudaMemcpy(memory, numbers[round], sizeof numbers[round], cudaMemcpyHostToDevice);
        cuinstr::guard guard(module, nullptr, std::chrono::milliseconds(100));
        halve<<<1, 32>>>(memory, 3);
        cuinstr::outcome outcome = guard.wait();
        cudaMemcpy(numbers[round], memory, sizeof numbers[round], cudaMemcpyDeviceToHost);
        std::puts(outcome.stopped() ? outcome.report() : "completed");
        std::printf("%u %u %u, line %u\n", numbers[round][0], numbers[round][1], numbers[round][2], outcome->line);
        if (outcome.stopped() != (round == 0)) return 1;
    }
    return numbers[1][2] != 1;
} catch (const cuinstr::error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
