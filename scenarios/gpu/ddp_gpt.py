"""Trains a small GPT with PyTorch's DistributedDataParallel, and prints its loss after each step.

Bit-reproducible: data and weights follow from --seed, all kernels are deterministic ones, and NCCL is
told one algorithm. So two runs whose losses differ in one bit had other data in some AllReduce. Losses
are printed with all their bits; the last line has a number of all of them.
"""
import argparse
import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before CUDA begins
os.environ.setdefault("NCCL_ALGO", "Ring")
os.environ.setdefault("NCCL_PROTO", "Simple")

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.parallel import DistributedDataParallel


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(),
                                  nn.Linear(4 * width, width))

    def forward(self, x):
        samples, length, width = x.shape
        q, k, v = (part.view(samples, length, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(self.before(x)).split(width, dim=2))
        with sdpa_kernel(SDPBackend.MATH):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(samples, length, width))
        return x + self.feed(x)


class Gpt(nn.Module):
    def __init__(self, vocabulary, length, width, heads, layers):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.blocks(self.words(tokens) + self.places(places)))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=500)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--width", type=int, default=384)
    options.add_argument("--length", type=int, default=128, help="tokens of a sample")
    options.add_argument("--samples", type=int, default=4, help="of a rank in a step")
    options.add_argument("--seed", type=int, default=int(os.environ.get("FAULTLINE_SEED", "7")))
    args = options.parse_args()

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(args.seed)
    dist.init_process_group("nccl", device_id=device)

    vocabulary = 512
    model = Gpt(vocabulary, args.length, args.width, 6, args.layers).to(device)
    bytes_of_gradient = sum(p.numel() * p.element_size() for p in model.parameters())
    model = DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=False, foreach=True)
    if rank == 0:
        print(f"# PyTorch {torch.__version__} NCCL version {'.'.join(map(str, torch.cuda.nccl.version()))}, {ranks} ranks on "
              f"{torch.cuda.device_count()} GPU(s), gradient {bytes_of_gradient} bytes", flush=True)

    # Sequences that can be learnt: each token follows from the one before, but for some noise.
    data = torch.Generator().manual_seed(args.seed * 1000003 + rank)
    digest = hashlib.sha256()
    began = time.perf_counter()
    progress = os.environ.get("FAULTLINE_PROGRESS")
    for step in range(args.steps):
        if progress:
            with open(progress, "a") as file:
                file.write(f"{step}\n")
        first = torch.randint(vocabulary, (args.samples, 1), generator=data)
        noise = torch.randint(3, (args.samples, args.length), generator=data)
        tokens = ((first + (17 + noise).cumsum(1)) % vocabulary).to(device)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, vocabulary), tokens[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told = loss.detach().clone()
        dist.all_reduce(told, op=dist.ReduceOp.SUM)
        value = float(told) / ranks
        digest.update(value.hex().encode())
        if rank == 0:
            print(f"step {step} loss {value:.6f} {value.hex()}", flush=True)
    took = time.perf_counter() - began
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    print(f"steps/s {args.steps / took:.4f}")
    # As many bits as a double holds exactly.
    print(f"loss_digest {int(digest.hexdigest()[:12], 16)}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
