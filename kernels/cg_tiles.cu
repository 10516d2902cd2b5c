//@ about: cooperative groups, tiles of 16: a dot product a row and a search in it
//@ entry: tile_rows
//@ grid: 20
//@ block: 128
//@ arg: i32[15200] mod 2003
//@ arg: i32[95] mod 97
//@ arg: i32 160
//@ arg: i32 95
//@ arg: i64[160] zero
//@ arg: i32[160] const -2

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int TILE = 16;

__global__ void tile_rows(const int *matrix, const int *vector, int rows, int cols, long long *dot, int *first_small)
{
    auto block = cg::this_thread_block();
    auto tile = cg::tiled_partition<TILE>(block);

    const int row = block.group_index().x * tile.meta_group_size() + tile.meta_group_rank();
    if (row >= rows)
        return;
    const int *line = matrix + row * cols;

    long long sum = 0;
    for (int c = tile.thread_rank(); c < cols; c += tile.size())
        sum += (long long)line[c] * vector[c];

    for (int i = tile.size() / 2; i > 0; i /= 2)
        sum += tile.shfl_down(sum, i);

    // The first entry below the threshold, a tile's width at a time; all lanes leave together.
    int found = -1;
    for (int start = 0; start < cols && found < 0; start += TILE) {
        const int c = start + tile.thread_rank();
        const bool hit = c < cols && line[c] < 20;
        if (const unsigned who = tile.ballot(hit))
            found = start + __ffs(who) - 1;
    }

    if (tile.thread_rank() == 0) {
        dot[row] = sum;
        first_small[row] = found;
    }
}
