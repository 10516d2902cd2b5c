//@ about: quicksort of a segment for each thread, with its own stack in place of recursion
//@ entry: sort_segments
//@ grid: 8
//@ block: 64
//@ arg: i32[49152] mod 7919
//@ arg: i32 96

#define SMALL 8

__device__ void exchange(int &a, int &b) { int t = a; a = b; b = t; }

__device__ void insertion_sort(int *first, int *last)
{
    for (int *p = first + 1; p <= last; ++p) {
        int v = *p, *q = p;
        for (; q > first && q[-1] > v; --q)
            *q = q[-1];
        *q = v;
    }
}

// Hoare's partition; both halves are shorter than the whole.
__device__ int *split(int *first, int *last)
{
    const int pivot = first[(last - first) / 2];
    --first, ++last;
    for (;;) {
        do ++first; while (*first < pivot);
        do --last; while (*last > pivot);
        if (first >= last)
            return last;
        exchange(*first, *last);
    }
}

__global__ void sort_segments(int *data, int length)
{
    int *stack[32], **sp = stack;   // pairs; the larger half waits, so 16 are plenty
    int *first = data + (blockIdx.x * blockDim.x + threadIdx.x) * length;
    int *last = first + length - 1;

    while (true) {
        if (last - first < SMALL) {
            insertion_sort(first, last);
            if (sp == stack)
                break;
            last = *--sp;
            first = *--sp;
            continue;
        }

        int *const mid = split(first, last);
        if (mid - first > last - mid - 1) {
            *sp++ = first; *sp++ = mid;
            first = mid + 1;
        } else {
            *sp++ = mid + 1; *sp++ = last;
            last = mid;
        }
    }
}
