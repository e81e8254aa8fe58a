"""A program that knows nothing of faultline: ranks in a ring add numbers over a rail.

Each round, a number goes once around the ring and every rank adds its own, so that it comes back as
the sum of all ranks; then once more, by which all know it. A rank tells its rounds, and at the end what
it knows of itself.
"""

import json
import os
import socket
import struct
import sys
import time

ROUNDS = 40
PORT = 23400
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def address_of(other):
    return os.environ[f"FAULTLINE_RAIL_0_ADDRESS_{other // int(os.environ['LOCAL_WORLD_SIZE'])}"], PORT + other


def connect(to):
    for _ in range(2000):
        try:
            return socket.create_connection(to)
        except ConnectionRefusedError:
            time.sleep(0.005)
    sys.exit(f"nobody listens at {to}")


with socket.create_server(address_of(rank)) as server:
    after = connect(address_of((rank + 1) % ranks))
    before, _ = server.accept()


def receive():
    got = b""
    while len(got) < 8:
        part = before.recv(8 - len(got))
        if not part:
            sys.exit("the rank before is gone")
        got += part
    return struct.unpack("!q", got)[0]


def send(number):
    after.sendall(struct.pack("!q", number))


total = 0
for number in range(ROUNDS):
    with open(os.environ["FAULTLINE_PROGRESS"], "a") as progress:
        progress.write(f"{number}\n")
    if rank == 0:
        send(rank)
        total = receive()
        send(total)
        receive()
    else:
        send(receive() + rank)
        total = receive()
        send(total)
    time.sleep(0.005)

with open("told.json", "w") as told:
    json.dump({"sum": total, "node": os.environ["FAULTLINE_NODE"]}, told)
keys = ("RANK", "LOCAL_RANK", "FAULTLINE_INTERFACES", "FAULTLINE_ADDRESS", "CUDA_VISIBLE_DEVICES", "HOSTED")
print(" ".join(f"{key}={os.environ[key]}" for key in keys))
print(f"rounds {ROUNDS} in {os.getcwd()}")
