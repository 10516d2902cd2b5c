"""Functions that JAX compiles, one with a loop on the device: their results, and microseconds a call."""
import time

import jax
import jax.numpy as jnp


@jax.jit
def step(x, w):
    return jax.lax.fori_loop(0, 10, lambda _, x: jnp.tanh(x @ w) * 0.9, x).sum(0)


@jax.jit
def sort(x):
    return jnp.cumsum(jnp.sort(x * 1.5))


x = jax.random.normal(jax.random.key(0), (256, 256))
w = jax.random.normal(jax.random.key(1), (256, 256)) * 0.05
result, sorted_ = step(x, w), sort(x.ravel())
result.block_until_ready()
since = time.perf_counter()
for _ in range(100):
    result = step(x, w)
result.block_until_ready()
print(f"result {float(result.sum()):.9g} {float(sorted_[1000]):.9g}")
print(f"TIME call {(time.perf_counter() - since) / 100 * 1e6:.1f}")
