// Plain loops of one kernel whose values stay alive over all of them: with so many the compiler makes what it needs again and again instead of keeping it.
struct node { node *next; int weight; };
extern "C" __global__ void many(const int *a, const float *b, int *c, float *d, const node *list, const int *rows, const int *columns,
                                int n, int m, unsigned u, unsigned v, long long w, int stride)
{
    int x0 = a[0], x1 = a[1], x2 = a[2], x3 = a[3], x4 = a[4], x5 = a[5];
    float f0 = b[0], f1 = b[1], f2 = b[2], f3 = b[3];
    unsigned u0 = u, u1 = v;
    long long l0 = w;
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < n; ++i) x0 += a[i] * x1;
    for (int i = t; i < n; i += stride) x1 += a[i];
    for (int i = t; i < n; i += gridDim.x * blockDim.x) f0 += b[i];
    for (int i = n - 1; i >= 0; --i) x2 ^= a[i];
    for (const int *p = a + t; p < a + n; p += 32) x3 += *p;
    for (const int *p = a; p != a + m; ++p) x4 += *p * x3;
    for (const node *p = list; p; p = p->next) x5 += p->weight;
    for (unsigned i = u; i < v; i += 3) u0 += i * a[i];
    for (long long i = 0; i < w; i += 2) l0 += a[i];
    for (int r = 0; r < n; ++r)
        for (int k = rows[r]; k < rows[r + 1]; ++k) f1 += b[k] * columns[k];
    for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j) f2 += b[i * m + j];
    int lo = 0, hi = n;
    while (lo < hi) { int mid = (lo + hi) / 2; if (a[mid] < x0) lo = mid + 1; else hi = mid; }
    while (u1 != 1 && u1 != 0) { u1 = u1 & 1 ? u1 * 3 + 1 : u1 / 2; }
    do { x0 = a[x0 & 255]; } while (x0 != n);
    for (int i = 1; i < n; i *= 2) x1 += a[i];
    for (size_t i = t; i < (size_t)w; i += 4) f3 += b[i];
    for (int i = x2; i <= m; i += 5) c[i] = x3 + i;
    c[0] = x0; c[1] = x1; c[2] = x2; c[3] = x3; c[4] = x4; c[5] = x5; c[6] = u0; c[7] = u1; c[8] = lo; c[9] = (int)l0;
    d[0] = f0; d[1] = f1; d[2] = f2; d[3] = f3;
}
