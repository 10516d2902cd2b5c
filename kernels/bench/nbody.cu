//@ about: accelerations of n bodies, tiles in shared memory
//@ entry: nbody
//@ grid: 132
//@ block: 128
//@ shared: 2048
//@ arg: f32[67584] rand 18
//@ arg: f32[67584] zero
//@ arg: i32 16896
//@ arg: f32 0.0001
//@ long: grid 1056
//@ long: arg 0 f32[40000000] rand 18
//@ long: arg 1 f32[40000000] zero
//@ long: arg 2 i32 10000000

__device__ float3 pull(float4 self, float4 other, float soft2, float3 acc)
{
	const float3 r = make_float3(other.x - self.x, other.y - self.y, other.z - self.z);
	const float d2 = r.x * r.x + r.y * r.y + r.z * r.z + soft2;
	const float inv = 1.0f / sqrtf(d2);
	const float s = other.w * inv * inv * inv;	// the mass is in w

	acc.x += r.x * s;
	acc.y += r.y * s;
	acc.z += r.z * s;
	return acc;
}

__global__ void nbody(const float4 *bodies, float4 *acceleration, int n, float soft2)
{
	extern __shared__ float4 tile[];

	const int i = blockIdx.x * blockDim.x + threadIdx.x;
	const float4 self = i < n ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
	float3 acc = { 0.0f, 0.0f, 0.0f };

	for (int start = 0; start < n; start += blockDim.x) {
		const int j = start + threadIdx.x;
		tile[threadIdx.x] = j < n ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
		__syncthreads();

		#pragma unroll 8
		for (unsigned k = 0; k < blockDim.x; ++k)
			acc = pull(self, tile[k], soft2, acc);
		__syncthreads();
	}

	if (i < n)
		acceleration[i] = make_float4(acc.x, acc.y, acc.z, 0.0f);
}
