# SPDX-License-Identifier: Apache-2.0
# needs: torch triton
# parts: add softmax
#
# Kernels of Triton.
import os
import sys
import time

import torch
import triton
import triton.language as tl

part = sys.argv[1]


@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * n + i, e / tl.sum(e, axis=0), mask=i < n)


x = torch.arange(1 << 16, device="cuda", dtype=torch.float32) / 1000
out = torch.empty_like(x)


def step():
    if part == "add":
        add[(64,)](x, x, out, x.numel(), B=1024)
    else:
        softmax[(64,)](x, out, 1024, B=1024)
    torch.cuda.synchronize()
    return out.double().sum().item()


print(part, " ".join(f"{step():.6g}" for _ in range(5)))
count = 100 if os.environ.get("TIMES") else 20
begin = time.monotonic()
for _ in range(count):
    step()
print(f"# {(time.monotonic() - begin) / count * 1e6:.1f} us a step")
