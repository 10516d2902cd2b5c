//@ about: point in polygon: guards that return early, and returns inside loops
//@ entry: classify_points
//@ grid: 50
//@ block: 96
//@ arg: f32[9600] rand 32
//@ arg: i32 4750
//@ arg: f32[42] rand 33
//@ arg: i32 21
//@ arg: i32[4800] const -9

enum Place { OUTSIDE_BOX = -1, OUTSIDE = 0, INSIDE = 1, NEAR_CORNER = 2 };

__device__ bool in_box(float2 p, const float2 *corner, int corners)
{
    float2 lo = corner[0], hi = corner[0];
    for (int i = 1; i < corners; ++i) {
        lo.x = fminf(lo.x, corner[i].x); hi.x = fmaxf(hi.x, corner[i].x);
        lo.y = fminf(lo.y, corner[i].y); hi.y = fmaxf(hi.y, corner[i].y);
    }
    return p.x >= lo.x && p.x <= hi.x && p.y >= lo.y && p.y <= hi.y;
}

__device__ Place classify(float2 p, const float2 *corner, int corners)
{
    if (!in_box(p, corner, corners)) return OUTSIDE_BOX;

    for (int i = 0; i < corners; ++i) {
        const float dx = p.x - corner[i].x, dy = p.y - corner[i].y;
        if (dx * dx + dy * dy < 1e-4f)
            return NEAR_CORNER;
    }

    bool inside = false;
    for (int i = 0, j = corners - 1; i < corners; j = i++) {
        const float2 a = corner[i], b = corner[j];
        if ((a.y > p.y) == (b.y > p.y)) continue;
        if (p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x)
            inside = !inside;
    }
    return inside ? INSIDE : OUTSIDE;
}

__global__ void classify_points(const float2 *points, int n, const float2 *corner, int corners, int *place)
{
    if (corners < 3) return;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) { return; }
    place[i] = classify(points[i], corner, corners);
}
