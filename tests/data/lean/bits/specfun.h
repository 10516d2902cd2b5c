// Stands for libstdc++'s own where scripts/test-lanes compiles. From C++17 on, <cmath> reads Bessel functions and their like
// through it, and <cmath> comes with each CUDA source: a third of what nvcc reads for a small kernel. No test calls them.
