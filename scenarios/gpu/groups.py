"""Several process groups of PyTorch at once, as tensor and data parallelism have them.

Four ranks (or any even number): neighbours are a tensor group, ranks of the same parity a data group, and
all are the world. In each round all three have an AllReduce under way at the same time; every element of
every result is compared.
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=40)
    options.add_argument("--elements", type=int, default=1 << 21, help="of each AllReduce")
    args = options.parse_args()

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    if rank == 0:
        print(f"# PyTorch {torch.__version__} NCCL version {'.'.join(map(str, torch.cuda.nccl.version()))}, "
              f"{ranks} ranks on {torch.cuda.device_count()} GPU(s)", flush=True)
    mine = []
    for members in ([[r, r + 1] for r in range(0, ranks, 2)] +
                    [list(range(parity, ranks, 2)) for parity in (0, 1)] + [list(range(ranks))]):
        group = dist.new_group(members)
        if rank in members:
            mine.append((group, members))
    wrong, checked = 0, 0
    progress = os.environ.get("FAULTLINE_PROGRESS")
    places = torch.arange(args.elements, device=device)
    began = time.perf_counter()
    for turn in range(args.rounds):
        if progress:
            with open(progress, "a") as file:
                file.write(f"{turn}\n")
        work = []
        for number, (group, members) in enumerate(mine):
            def data(r):
                return (places + r + turn + number).remainder(16).float()
            tensor = data(rank)
            work.append((dist.all_reduce(tensor, group=group, async_op=True), tensor,
                         sum(data(r) for r in members)))
        for handle, tensor, wanted in work:
            handle.wait()
            wrong += int((tensor != wanted).sum())
            checked += tensor.numel()
    took = time.perf_counter() - began
    print(f"rounds/s {args.rounds / took:.4f}")
    print(f"checked {checked} wrong {wrong}", flush=True)
    dist.destroy_process_group()
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
