"""The pipes of a worker, and its end. The files of this folder are one program, in the order pipes, spaces,
worker, teams, main."""


import os
import sys

# The pipes are taken before anything else may print: what environments print goes to stderr.
COMMANDS, REPLIES = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.stdout.reconfigure(line_buffering=True)

import copyreg
import importlib.util
import io
import json
import math
import pickle
import select
import signal
import struct
import threading
import time
import traceback

TERMINATED, TRUNCATED = 1, 2

# Seconds for which a worker asks for its next command again before it sleeps, as many as the program (`pipe.rs`).
PATIENCE = 200e-6
# Lets another process have this core.
give_way = getattr(os, "sched_yield", lambda: time.sleep(0))
os.set_blocking(COMMANDS, False)


def end_with_parent():
    """Ends this process when the parent dies, even in the middle of a step."""
    try:
        import ctypes

        # PR_SET_PDEATHSIG. The parent starts workers on a thread that lives as long as itself.
        if sys.platform == "linux" and ctypes.CDLL(None).prctl(1, signal.SIGKILL) == 0:
            return
    except (ImportError, OSError, AttributeError):
        pass
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Refused(Exception):
    """An error that the parent reports without a traceback: its kind and the parts of its message."""

    def __init__(self, kind, message, **parts):
        super().__init__(message)
        self.report = {"kind": kind, "message": message, **parts}


def refuse_space(message):
    raise Refused("space", message)


def read(size):
    """At most `size` bytes from the parent, as soon as there are some; none if it has closed its pipe."""
    until = time.perf_counter() + PATIENCE
    while True:
        try:
            return os.read(COMMANDS, size)
        except BlockingIOError:
            if time.perf_counter() < until:
                give_way()
            else:
                select.select([COMMANDS], [], [])


def receive(size):
    parts = []
    while size > 0:
        part = read(min(size, 1 << 20))
        if not part:
            quit_worker()
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive_body():
    return receive(struct.unpack("<Q", receive(8))[0])


def send(data):
    view = memoryview(data)
    while view:
        view = view[os.write(REPLIES, view) :]


def send_body(head, body):
    send(head + struct.pack("<Q", len(body)) + body)


def quit_worker():
    """The parent closed its pipe."""
    for env in ENVS:
        try:
            env.close()
        except Exception:
            traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
