#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training with PyTorch that keeps account: ranks of any launcher that sets the variables of torchrun, with gloo on CPUs.

    train.py --steps=200 --step=0.1 --every=20
    train.py --fault=kill:1:25 --fault=hang:3:60     once each: a file in the folder of checkpoints remembers it

Each rank fits the same line to numbers of its own and adds up gradients with all others. Besides it counts: the sum after the last step
is known beforehand, and it is right only if the sum that is kept has each step of each rank exactly once. Rank 0 writes result.json.
"""
import argparse
import json
import math
import os
import signal
import socket
import sys
import time

ARGS = argparse.ArgumentParser(description="A training with PyTorch, for tests and for a comparison.")
ARGS.add_argument("--steps", type=int, default=200, help="steps of the whole training")
ARGS.add_argument("--step", type=float, default=0.1, help="seconds that a step takes at least")
ARGS.add_argument("--every", type=int, default=20, help="a checkpoint after so many steps")
ARGS.add_argument("--fault", action="append", default=[], help="KIND:RANK:STEP, where KIND is kill, raise, hang or nan")
ARGS.add_argument("--timeout", type=float, default=1800, help="seconds after which a collective operation fails; the default is PyTorch's")
ARGS.add_argument("--checkpoints", default=os.environ.get("CAPSTAN_CHECKPOINTS") or ".", help="folder that all ranks share")
ARGS.add_argument("--events", default="", help="Unix socket for a line of JSON per event. It shows when a rank starts and ends")
OPTIONS = ARGS.parse_args()
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Events:
    """Who measures gets each event when it happens, and sees the end of the process by the end of the connection."""

    def __init__(self, path):
        self.to = None
        if path:
            self.to = socket.socket(socket.AF_UNIX)
            self.to.connect(path)
        self.say("start")

    def say(self, event, step=0):
        if self.to:
            self.to.sendall((json.dumps({"rank": RANK, "event": event, "step": step}) + "\n").encode())


# Before PyTorch is loaded, which takes seconds.
events = Events(OPTIONS.events)

from datetime import timedelta  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


def newest():
    """The checkpoint to begin with. A crew names it, and an empty name is the beginning; other launchers name none."""
    named = os.environ.get("CAPSTAN_RESUME_FROM")
    if named is not None:
        return named
    found = [f for f in os.listdir(OPTIONS.checkpoints) if f.startswith("step-") and f.endswith(".pt")]
    return os.path.join(OPTIONS.checkpoints, max(found)) if found else ""


def progress(**line):
    print(" ".join(f"{k}={v}" for k, v in line.items()), flush=True)
    if path := os.environ.get("CAPSTAN_PROGRESS"):
        with open(path, "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def replace(path, write):
    """A file is there when it is whole, and only then."""
    with open(path + ".next", "wb") as out:
        write(out)
        out.flush()
        os.fsync(out.fileno())
    os.replace(path + ".next", path)


def due(step):
    """The fault of this rank at this step, unless it has struck before."""
    for fault in OPTIONS.fault:
        kind, rank, at = fault.split(":")
        if (int(rank), int(at)) != (RANK, step):
            continue
        try:
            os.close(os.open(os.path.join(OPTIONS.checkpoints, "struck-" + fault.replace(":", "-")), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return kind
    return ""


def strike(kind, step):
    events.say("fault", step)
    if kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "raise":
        raise RuntimeError(f"rank {RANK} was asked to fail at step {step}")
    elif kind == "hang":
        while True:
            time.sleep(3600)


def train():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    weights = torch.zeros(4, requires_grad=True)
    counted, step = torch.zeros(1, dtype=torch.int64), 0
    if path := newest():
        saved = torch.load(path, weights_only=True)
        step, counted = saved["step"], saved["counted"]
        with torch.no_grad():
            weights.copy_(saved["weights"])
    dist.init_process_group("gloo", timeout=timedelta(seconds=OPTIONS.timeout))
    events.say("joined", step)
    if RANK == 0 and step:
        print(f"resumed after step {step} from {path}", flush=True)
    numbers = torch.Generator().manual_seed(RANK)
    while step < OPTIONS.steps:
        step += 1
        kind = due(step)
        if kind:
            strike(kind, step)
        time.sleep(OPTIONS.step)
        x = torch.randn(16, 4, generator=numbers)
        loss = (x @ weights - x.sum(1)).square().mean()
        if kind == "nan":
            loss = loss * math.nan
        loss.backward()
        dist.all_reduce(weights.grad)
        share = torch.tensor([step * (RANK + 1)])
        dist.all_reduce(share)
        with torch.no_grad():
            weights -= 0.05 * weights.grad / WORLD
            weights.grad = None
        counted += share
        events.say("step", step)
        progress(step=step, of=OPTIONS.steps, loss=f"{loss.item():.4g}")
        if RANK == 0 and (step % OPTIONS.every == 0 or step == OPTIONS.steps):
            path = os.path.join(OPTIONS.checkpoints, f"step-{step:08d}.pt")
            replace(path, lambda out: torch.save({"step": step, "counted": counted, "weights": weights.detach()}, out))
            progress(step=step, of=OPTIONS.steps, checkpoint=path)
    # Rank 0 is the last to leave, because it has the store.
    dist.barrier()
    want = sum(range(OPTIONS.steps + 1)) * sum(range(WORLD + 1))
    result = {"steps": step, "world": WORLD, "counted": counted.item(), "want": want, "exact": counted.item() == want}
    if RANK == 0:
        replace(os.path.join(OPTIONS.checkpoints, "result.json"), lambda out: out.write(json.dumps(result).encode()))
        print(json.dumps(result), flush=True)
    dist.destroy_process_group()
    return 0 if result["exact"] else 1


sys.exit(train())
