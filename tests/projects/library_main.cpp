// Linked by the host's compiler alone.
#include <cstdio>
#include <cstdlib>
extern "C" int FIRST_run(int open);
extern "C" int SECOND_run(int open);
int main(int count, char** words) {
    const int first = FIRST_run(1), second = SECOND_run(count > 1 ? std::atoi(words[1]) : 0);
    std::printf("errors %d %d\n", first, second);
    return second != 0;
}
