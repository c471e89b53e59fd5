"""Ports for the tasks of tests and benchmarks."""

import random
import socket


def free_ports(count):
    """None of them can be taken by an outgoing connection before a task that
    is being started listens there: those have ports of another range."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        end = max(int(f.read().split()[0]), 20000)
    sockets = {}
    while len(sockets) < count:
        port, s = random.randrange(10000, end), socket.socket()
        try:
            s.bind(("localhost", port))
            sockets[port] = s
        except OSError:
            s.close()
    for s in sockets.values():
        s.close()
    return list(sockets)
