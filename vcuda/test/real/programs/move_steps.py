# SPDX-License-Identifier: Apache-2.0
#
# move_steps.py COUNT [PAUSE [WORK]]: training whose losses are printed bit by bit, a line for each step, as slow as somebody
# outside needs who moves it to another GPU meanwhile: PAUSE seconds after each step. WORK: so many products of matrices in
# each, some 0.4 ms of a GPU's time, on which no loss depends.
# needs: torch
import os
import sys
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"

import torch  # noqa: E402
from torch import nn  # noqa: E402

torch.use_deterministic_algorithms(True)
torch.manual_seed(3)
torch.cuda.manual_seed(3)
pause = float(sys.argv[2]) if len(sys.argv) > 2 else 0.05
model = nn.Sequential(nn.TransformerEncoderLayer(512, 8, batch_first=True, dropout=0.1), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
stream = torch.cuda.Stream()
work = int(sys.argv[3]) if len(sys.argv) > 3 else 0
matrix = torch.full((2048, 2048), 1 / 2048, device="cuda") if work else None
kept = torch.arange(1 << 28, dtype=torch.int32, device="cuda")
pinned = torch.empty(16, 64, 512).pin_memory()
print("#", torch.cuda.get_device_properties(0).uuid, flush=True)
for step in range(int(sys.argv[1])):
    pinned.copy_(torch.randn(16, 64, 512))
    with torch.cuda.stream(stream):
        batch = pinned.to("cuda", non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    optimizer.zero_grad()
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    for _ in range(work):
        matrix = matrix @ matrix
    print(step, loss.item().hex(), flush=True)
    time.sleep(pause)
print("kept", bool((kept == torch.arange(1 << 28, dtype=torch.int32, device="cuda")).all()), torch.cuda.device_count())
print("#", torch.cuda.get_device_properties(0).uuid, flush=True)
