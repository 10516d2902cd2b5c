// A program whose blocks take a while each; what stands in for the driver knows the kernel by its name. Its words: `b` launches and waits, `c` launches all
// blocks at once, `g` launches a graph in front.
#include <cstdio>
#include <cstring>

extern "C" __global__ void blocks(unsigned long long slots, unsigned long long ns, unsigned* counts) {
    while (slots-- > ns) counts[blockIdx.x] += 1;
}

int main(int, char** words) {
    const int count = 96;
    unsigned* counts;
    unsigned found[count] = {};
    cudaMalloc(&counts, sizeof found);
    cudaMemcpy(counts, found, sizeof found, cudaMemcpyHostToDevice);
    if (words[1][0] == 'g') cudaGraphLaunch(nullptr, nullptr);
    unsigned long long slots = 4, ns = 25000000;
    if (words[1][0] == 'c') {
        void* all[] = {&slots, &ns, &counts};
        cudaLaunchCooperativeKernel((const void*)blocks, dim3(count), dim3(32), all, 0, nullptr);
    } else {
        blocks<<<dim3(8, 6, 2), 32>>>(slots, ns, counts);
    }
    const int waited = cudaDeviceSynchronize();
    cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost);
    int once = 0;
    for (int block = 0; block < count; ++block) once += found[block] == 1;
    std::printf("waited: %d, %d once\n", waited, once);
    return cudaFree(counts);
}
