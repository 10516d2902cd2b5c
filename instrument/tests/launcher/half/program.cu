#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace scope {
template <class T>
__global__ void spin(T* gate) {
    while (*(volatile T*)gate == 0) {
    }
}
}  // namespace scope
__global__ void burn(int* gate) {
    while (*(volatile int*)gate == 0) {
    }
}
__global__ void deaf() {}
__global__ void stubborn() {}
__global__ void sleeps() {}
__global__ void lost() {}
__global__ void fills() {}
__global__ void fills_too() {}
__global__ void full(int* p) {
    extern __shared__ int tile[];
    for (int i = 0; i < *p; ++i) {
        tile[i] = i;
        __syncthreads();
        p[i] = tile[0];
    }
}

extern "C" unsigned long long cuinstr_stopped_launches();

int main(int count, char** words) {
    cudaStream_t other;
    cudaStreamCreate(&other);
    for (int word = 1; word < count; ++word) {
        switch (words[word][0]) {
            case 's': scope::spin<int><<<2, 32>>>(nullptr); break;
            case 'b': burn<<<2, 32>>>(nullptr); break;
            case 'u': stubborn<<<1, 1>>>(); break;
            case 'd': deaf<<<1, 1>>>(); break;
            case 'm': sleeps<<<(unsigned)std::atoi(words[word] + 1), 1>>>(); break;
            case 'o': sleeps<<<(unsigned)std::atoi(words[word] + 1), 1, 0, other>>>(); break;
            case 'l': lost<<<1, 1>>>(); break;
            case 'F': fills<<<(unsigned)std::atoi(words[word] + 1), 1>>>(); break;
            case 'G': fills_too<<<(unsigned)std::atoi(words[word] + 1), 1, 0, other>>>(); break;
            case 'w': std::printf("waited: %d\n", (int)cudaDeviceSynchronize()); break;
            case 'W': std::printf("waited: %d\n", (int)cudaStreamSynchronize(other)); break;
            case 'a': std::printf("stopped: %llu\n", cuinstr_stopped_launches()); break;
            case 'L':
                while (cuinstr_stopped_launches() == 0) usleep(1000);
                break;
            case 'x': std::exit(std::atoi(words[word] + 1));
            case 'p': {
                void* none[1] = {};
                cudaLaunchKernel((const void*)scope::spin<int>, dim3(1), dim3(1), none, 0, nullptr);
                break;
            }
            case 'S': {
                const int bytes = std::atoi(words[word] + 1);
                std::printf("set: %d\n", (int)cudaFuncSetAttribute(full, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
                break;
            }
            case 'R': {
                void* none[1] = {};
                std::printf("launched: %d\n", (int)cudaLaunchKernel((const void*)full, dim3(1), dim3(1), none, std::atoi(words[word] + 1), nullptr));
                break;
            }
            case 'f': {
                std::fflush(stdout);
                if (fork() != 0) {
                    int status = 0;
                    wait(&status);
                    std::printf("child: %d\n", WEXITSTATUS(status));
                    return 0;
                }
                break;
            }
        }
        std::fflush(stdout);
    }
    return 0;
}
