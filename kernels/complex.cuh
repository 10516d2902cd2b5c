//@ about: complex numbers for mandelbrot.cu

#pragma once

struct Complex
{
    float re, im;

    __host__ __device__ Complex(float r, float i) : re(r), im(i) {}

    __host__ __device__ float norm() const { return re * re + im * im; }
};

__host__ __device__ inline Complex operator+(Complex a, Complex b) { return Complex(a.re + b.re, a.im + b.im); }

__host__ __device__ inline Complex operator*(Complex a, Complex b)
{
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}

// Steps until z -> z * z + c leaves the disk of radius 2, at most `limit`.
__host__ __device__ inline int escape_time(Complex c, int limit)
{
    Complex z(0.0f, 0.0f);
    int n = 0;
    while (n < limit && z.norm() <= 4.0f) {
        z = z * z + c;
        n++;
    }
    return n;
}
