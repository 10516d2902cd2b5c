//@ about: spheres on a plane by sphere tracing, several rays for each pixel
//@ entry: ray_march
//@ grid: 120 135
//@ block: 16 8
//@ arg: f32[2073600] zero
//@ arg: i32 1920
//@ arg: i32 1080
//@ arg: f32[64] rand 34
//@ arg: i32 16
//@ arg: i32 2
//@ arg: i32 128
//@ long: grid 44 30
//@ long: arg 1 i32 704
//@ long: arg 2 i32 240
//@ long: arg 5 i32 2000000

// Spheres are (x, y, z, size), all in [0, 1).
__device__ float distance_to_scene(float3 p, const float4 *spheres, int count)
{
    float nearest = p.y;        // the plane
    for (int i = 0; i < count; ++i) {
        const float4 s = spheres[i];
        const float dx = p.x - 8.0f * (s.x - 0.5f), dy = p.y - 2.0f * s.y, dz = p.z - 4.0f - 8.0f * s.z;
        nearest = fminf(nearest, sqrtf(dx * dx + dy * dy + dz * dz) - 0.2f - 0.6f * s.w);
    }
    return nearest;
}

__global__ void ray_march(float *image, int width, int height, const float4 *spheres, int count, int rays, int most_steps)
{
    const int px = blockIdx.x * blockDim.x + threadIdx.x;
    const int py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= width || py >= height) return;

    float light = 0.0f;
    for (int ray = 0; ray < rays; ++ray) {
        // The rays of a pixel lie on a lattice inside it.
        const float u = (px + (ray * 0.618034f - floorf(ray * 0.618034f)) - 0.5f * width) / height;
        const float v = (0.5f * height - py - (ray + 0.5f) / rays) / height;
        const float inverse = rsqrtf(u * u + v * v + 1.0f);
        const float3 direction = make_float3(u * inverse, v * inverse, inverse);

        float t = 0.0f;
        int step = 0;
        while (step < most_steps && t < 60.0f) {
            const float3 p = make_float3(t * direction.x, 1.0f + t * direction.y, t * direction.z);
            const float d = distance_to_scene(p, spheres, count);
            if (d < 0.001f) break;
            t += d;
            ++step;
        }
        light += t < 60.0f ? expf(-0.1f * t) : 0.0f;
    }
    image[py * width + px] = light / rays;
}
