# SPDX-License-Identifier: Apache-2.0
# needs: jax
# parts: sum grad
#
# What users of JAX do.
import os
import sys
import time

import jax
import jax.numpy as jnp

part = sys.argv[1]
assert jax.devices()[0].platform == "gpu", jax.devices()
a = jnp.ones((512, 512)) / 512
grad = jax.jit(jax.grad(lambda w, x: jnp.tanh(x @ w).sum()))
step = {"sum": lambda: float(jnp.arange(1000).sum()), "grad": lambda: float(grad(a, a)[0, 0])}[part]
print(part, " ".join(f"{step():.5g}" for _ in range(5)))
count = 100 if os.environ.get("TIMES") else 20
begin = time.monotonic()
for _ in range(count):
    step()
print(f"# {(time.monotonic() - begin) / count * 1e6:.1f} us a step")
