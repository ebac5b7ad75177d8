# SPDX-License-Identifier: Apache-2.0
#
# share_steps.py PART: what processes of PyTorch do together; "reduce" where there are two GPUs, and the same by NCCL's other ways:
# memory of the host in place of NVLink, and CUDA's handles in place of descriptors.
# needs: torch
# parts: reduce host handles tensors
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def reduce_one(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(world))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    torch.manual_seed(7)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).cuda(), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(10):
        torch.manual_seed(100 + 10 * step + rank)
        loss = model(torch.randn(64, 512, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(f"{loss.item():.6f}")
    total = torch.full((1 << 22,), float(rank + 1), device="cuda")
    dist.all_reduce(total)
    if rank == 0:
        print(world, total[0].item(), total[-1].item(), *losses)
    dist.destroy_process_group()


def reduce(port=29555):
    """Training of one model by NCCL, a process for each GPU."""
    world = torch.cuda.device_count()
    if world < 2:
        print("one GPU")
        return
    mp.spawn(reduce_one, args=(world, port), nprocs=world)


def host():
    os.environ["NCCL_P2P_DISABLE"] = "1"
    reduce(29556)


def handles():
    os.environ["NCCL_CUMEM_ENABLE"] = "0"
    reduce(29557)


def take_tensors(queue, answers):
    total = 0.0
    for _ in range(8):
        tensor = queue.get()
        total += tensor.sum().item()
        tensor.add_(1)
        torch.cuda.synchronize()
        answers.put(1)
        del tensor
    answers.put(total)


def tensors():
    """Tensors of the GPU, with events behind which they are filled, that another process reads and changes."""
    queue, answers = mp.Queue(), mp.Queue()
    other = mp.Process(target=take_tensors, args=(queue, answers))
    other.start()
    changed = []
    for number in range(8):
        tensor = torch.full((1 << 18,), float(number), device="cuda")
        queue.put(tensor)
        answers.get()
        changed.append(tensor[-1].item())
    print(answers.get(), *changed)
    other.join()


if __name__ == "__main__":
    mp.set_start_method("spawn")
    {"reduce": reduce, "host": host, "handles": handles, "tensors": tensors}[sys.argv[1]]()
