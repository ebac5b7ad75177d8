# SPDX-License-Identifier: Apache-2.0
# needs: torch
# parts: sum train feed conv graph compile bf16 pinned segments gpt2 generate threads
#
# What users of PyTorch do; prints what it came to, and how long a step took.
import os
import sys
import time

part = sys.argv[1]
if part == "segments":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.manual_seed(3)
torch.cuda.manual_seed(3)


def prepare_sum():
    values = torch.arange(1000, device="cuda")
    return lambda: int(values.sum())


def train(batch):
    model = nn.Sequential(nn.TransformerEncoderLayer(512, 8, batch_first=True, dropout=0), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())

    def step():
        optimizer.zero_grad()
        loss = model(batch().cuda()).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def prepare_train():
    batch = torch.randn(16, 64, 512)
    return train(lambda: batch)


def prepare_feed():
    # OpenMP's threads make the data, and spin on all processors until the next.
    return train(lambda: torch.randn(16, 64, 512).sin())


def prepare_conv():
    conv = nn.Conv2d(3, 64, 3).cuda()
    images = torch.randn(8, 3, 224, 224, device="cuda")
    return lambda: conv(images).abs().mean().item()


def prepare_graph():
    a = torch.randn(512, 512, device="cuda")
    (a @ a).relu()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        total = (a @ a).relu().mean()

    def step():
        graph.replay()
        return total.item()

    return step


def prepare_compile():
    compiled = torch.compile(lambda a: (a @ a).relu().softmax(0).square().sum())
    a = torch.randn(512, 512, device="cuda")
    return lambda: compiled(a).item()


def prepare_bf16():
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)

    def step():
        for _ in range(10):
            b = a @ a
        return b.float().abs().mean().item()

    return step


def prepare_pinned():
    source = torch.arange(1 << 20, dtype=torch.float32).pin_memory()
    stream = torch.cuda.Stream()

    def step():
        with torch.cuda.stream(stream):
            there = source.to("cuda", non_blocking=True)
            back = there.to("cpu", non_blocking=True)
        event = torch.cuda.Event()
        event.record(stream)
        event.synchronize()
        return back.double().sum().item()

    return step


def prepare_segments():
    def step():
        tensors = [torch.ones(1 << i, device="cuda") for i in range(10, 24)]
        return sum(t.sum().item() for t in tensors)

    return step


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(n_layer=12, n_head=12, n_embd=768, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
    return GPT2LMHeadModel(config).cuda().to(torch.bfloat16)


def prepare_gpt2():
    model = gpt2()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens = torch.randint(0, 50000, (4, 512), device="cuda")

    def step():
        optimizer.zero_grad()
        loss = model(tokens, labels=tokens).loss
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def prepare_generate():
    model = gpt2().eval()
    tokens = torch.randint(0, 50000, (1, 16), device="cuda")

    def step():
        with torch.no_grad():
            out = model.generate(tokens, max_new_tokens=20, min_new_tokens=20, do_sample=False, pad_token_id=0)
        return int(out.sum())

    return step


def prepare_threads():
    import concurrent.futures

    def work(i):
        with torch.cuda.stream(torch.cuda.Stream()):
            a = torch.full((256, 256), float(i), device="cuda")
            return (a @ a).sum().item()

    def step():
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return sum(pool.map(work, range(8)))

    return step


step = globals()["prepare_" + part]()
# Of GPT-2 in bfloat16, the fifth digit is another one from run to run.
print(part, " ".join(f"{step():.{3 if part == 'gpt2' else 5}g}" for _ in range(5)))
count = 100 if part not in ("gpt2", "generate", "train", "feed") else 20
if not os.environ.get("TIMES"):
    count //= 5
torch.cuda.synchronize()
begin = time.monotonic()
for _ in range(count):
    step()
torch.cuda.synchronize()
print(f"# {(time.monotonic() - begin) / count * 1e6:.1f} us a step")
