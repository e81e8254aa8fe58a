#!/usr/bin/env python3
"""Connections that never say a word, to every TCP port on which other programs listen.

half_open.py CONTROLLER COUNT ADDRESS=PID...: for each address, looks in the network namespace of that process
for listening ports (but not ssh's), opens COUNT connections to each as it appears, and keeps them until the process
CONTROLLER ends, or until the other end closes them. Prints "flooded N", the connections that were made.
"""

import errno
import os
import resource
import selectors
import socket
import struct
import sys

LISTEN = "0A"
SSH = 22
AT_ONCE = 200  # begun together: more than a queue of connections holds would only be repeated by the kernel
PAUSE = 0.02


def listening(pid):
    """Ports with their addresses, "0.0.0.0" for any."""
    with open(f"/proc/{pid}/net/tcp", encoding="ascii") as table:
        for line in list(table)[1:]:
            _, local, _, state = line.split()[:4]
            address, port = local.split(":")
            if state == LISTEN and int(port, 16) != SSH:
                yield socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)


def lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def main():
    controller, count = int(sys.argv[1]), int(sys.argv[2])
    hosts = [argument.split("=") for argument in sys.argv[3:]]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    left, made, poller = {}, 0, selectors.EpollSelector()
    while lives(controller):
        for address, pid in hosts:
            for bound, port in listening(pid):
                if bound in ("0.0.0.0", address):
                    left.setdefault((address, port), count)
        for target in left:
            for _ in range(min(AT_ONCE, left[target])):
                connection = socket.socket()
                connection.setblocking(False)
                error = connection.connect_ex(target)
                if error not in (0, errno.EINPROGRESS):
                    connection.close()
                    break
                left[target] -= 1
                poller.register(connection, selectors.EVENT_WRITE, None)
        for key, _ in poller.select(PAUSE):
            connection = key.fileobj
            if key.data is None and connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                made += 1
                poller.modify(connection, selectors.EVENT_READ, "made")
                continue
            try:
                over = key.data is None or not connection.recv(4096)
            except BlockingIOError:
                over = False
            except OSError:
                over = True
            if over:
                poller.unregister(connection)
                connection.close()
    print("flooded", made)


main()
