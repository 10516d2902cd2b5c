//@ about: each thread allocates from the device heap and never gives it back, since it never ends
//@ entry: spin_heap
//@ block: 32
//@ arg: i32[1] zero

extern "C" __global__ void spin_heap(const volatile int *word)
{
    volatile unsigned *own = static_cast<volatile unsigned *>(malloc(64));
    unsigned turn = 0;
    while (*word == 0) {
        ++turn;
        if (own != nullptr)
            *own = turn;
    }
    free(const_cast<unsigned *>(own));
}
