//@ about: C++ without any device code
//@ code: CI006
//@ severity: error

#include <cstdio>

int main() {
    for (int i = 0; i < 3; i++) {
        std::printf("%d\n", i);
    }
    return 0;
}
