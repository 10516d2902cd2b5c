#include <cstdio>
#include <cstdlib>
#include <cstring>
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

extern "C" {
unsigned long long cuinstr_stopped_launches();
void stand_in_without_objects();
void stand_in_with_many_modules();
extern char** environ;
}

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
            case 'O': scope::spin<int><<<2, 32, 0, other>>>(nullptr); break;
            case 'E':  // As `setproctitle` does.
                for (char** one = environ; *one != nullptr; ++one) std::memset(*one, '#', std::strlen(*one));
                break;
            case 'M': stand_in_with_many_modules(); break;
            case 'U': stand_in_without_objects(); break;
            case 'C':
            case 'K':  // So many captured launches, of graphs that are destroyed, or kept.
                for (int left = std::atoi(words[word] + 1); left > 0; --left) {
                    cudaGraph_t graph;
                    cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal);
                    sleeps<<<1, 1>>>();
                    cudaStreamEndCapture(nullptr, &graph);
                    if (words[word][0] == 'C') cudaGraphDestroy(graph);
                }
                break;
            case 'T':  // So many streams, a launch in each.
                for (int left = std::atoi(words[word] + 1); left > 0; --left) {
                    sleeps<<<0, 1, 0, (cudaStream_t)(size_t)(2 * left + 1001)>>>();
                    if (left % 100 == 0) cudaDeviceSynchronize();
                }
                break;
            case 'I':  // So many modules, a launch of each.
                stand_in_with_many_modules();
                for (int left = std::atoi(words[word] + 1); left > 0; --left) {
                    void* none[1] = {};
                    cudaLaunchKernel((const void*)(size_t)(16 * left), dim3(0), dim3(1), none, 0, nullptr);
                }
                break;
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
