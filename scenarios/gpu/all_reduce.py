"""AllReduce sweep of PyTorch with NCCL, one process per rank, in nccl-tests' columns.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who it is. GPUs are taken in turn, so that ranks may
share one. Inputs are small integers, whose sums float32 holds exactly; every element is compared.
"""
import argparse
import os
import sys
import time

import torch
import torch.distributed as dist


def size_of(text):
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def contribution(rank, count, call, device):
    """Element i of rank r in call c is ((i + r + c) mod 16) - 8: neighbours, ranks and calls differ."""
    return (torch.arange(count, device=device) + rank + call).remainder_(16).sub_(8).float()


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", type=size_of, default=size_of("1M"), help="smallest size")
    options.add_argument("-e", type=size_of, default=size_of("64M"), help="largest size")
    options.add_argument("-f", type=int, default=2, help="from one size to the next")
    options.add_argument("-n", type=int, default=10, help="calls of each size")
    options.add_argument("-w", type=int, default=3, help="calls before them")
    args = options.parse_args()

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    if rank == 0:
        shared = "" if torch.cuda.device_count() >= ranks else f", {ranks} ranks share them"
        print(f"# PyTorch {torch.__version__} NCCL version {'.'.join(map(str, torch.cuda.nccl.version()))}, "
              f"{torch.cuda.device_count()} GPU(s){shared}")
        print("#       size         count      type   redop      time   algbw   busbw #wrong")
    bandwidths, all_wrong = [], 0
    size = args.b
    while size <= args.e:
        count = size // 4
        data = contribution(rank, count, 0, device)
        for _ in range(args.w):
            dist.all_reduce(data.clone())
        work = [data.clone() for _ in range(args.n)] if size * args.n <= 1 << 30 else None
        torch.cuda.synchronize()
        dist.barrier()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for i in range(args.n):
            dist.all_reduce(work[i] if work else data)
        torch.cuda.synchronize()
        took = torch.tensor([(time.perf_counter() - began) / args.n], device=device)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        result = contribution(rank, count, 1, device)
        dist.all_reduce(result)
        wanted = sum(contribution(r, count, 1, device) for r in range(ranks))
        wrong = (result != wanted).sum()
        dist.all_reduce(wrong)
        all_wrong += int(wrong)
        algbw = size / float(took) / 1e9
        bandwidths.append(algbw * 2 * (ranks - 1) / ranks)
        if rank == 0:
            print(f" {size:>11}{count:>14}     float     sum {float(took) * 1e6:>9.2f} {algbw:>7.4f} "
                  f"{bandwidths[-1]:>7.4f} {int(wrong):>6}", flush=True)
        size *= args.f
    if rank == 0:
        print(f"# Out of bounds values : {all_wrong} {'OK' if all_wrong == 0 else 'FAILED'}")
        print(f"# Avg bus bandwidth    : {sum(bandwidths) / len(bandwidths):.4f}", flush=True)
    dist.destroy_process_group()
    return 0 if all_wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
