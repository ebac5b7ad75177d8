# SPDX-License-Identifier: Apache-2.0
# needs: cupy
# parts: sum matmul fft sort random raw
#
# What users of CuPy do.
import os
import sys
import time

import cupy as cp

part = sys.argv[1]
a = cp.arange(512 * 512, dtype=cp.float64).reshape(512, 512) / (512 * 512)
raw = cp.RawKernel('extern "C" __global__ void twice(float *p) { p[threadIdx.x] *= 2; }', "twice") if part == "raw" else None


def twice():
    values = cp.arange(128, dtype=cp.float32)
    raw((1,), (128,), (values,))
    return float(values.sum())


step = {
    "sum": lambda: float(a.sum()),
    "matmul": lambda: float((a @ a).sum()),
    "fft": lambda: float(cp.abs(cp.fft.fft(a)).sum()),
    "sort": lambda: float(cp.sort(-a, 0)[0].sum()),
    "random": lambda: float(cp.random.RandomState(3).rand(1000).sum()),
    "raw": twice,
}[part]
print(part, " ".join(f"{step():.6g}" for _ in range(5)))
count = 100 if os.environ.get("TIMES") else 20
begin = time.monotonic()
for _ in range(count):
    step()
print(f"# {(time.monotonic() - begin) / count * 1e6:.1f} us a step")
