#!/usr/bin/python3
"""Tokens per second of training a GPT by dahl and by PyTorch, in float32 on the cores of this machine, in turn.

    python3 bench/parity/gpt_speed.py [--dahl bin/dahl] [--platform here.toml] [--rounds 5] [--steps 100] [NETWORK...]

PyTorch runs eagerly and by torch.compile, with one thread and with all, with scaled_dot_product_attention and fused AdamW (gpt.py has the networks). It times
its steps after ten others. dahl's figure is the step of a run, which ends with an evaluation and writes its files; the run's own line has it. Both train
on random tokens, which cost the same. A table in Markdown has the median and the range of each. Another load on the machine makes it worthless.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

import gpt

WARM = 10


def torch_ways(name):
    for threads in sorted({1, os.cpu_count()}):
        for how in ("eager", "compiled"):
            model = gpt.build(name)
            groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": gpt.DECAY},
                      {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
            optimizer = torch.optim.AdamW(groups, lr=gpt.RATE, betas=gpt.BETAS, fused=True)
            yield "PyTorch, %s, %s" % (how, "1 thread" if threads == 1 else "%d threads" % threads), threads, model, torch.compile(model) if how == "compiled" else model, optimizer


def torch_tokens_per_second(name, threads, model, run, optimizer, steps):
    torch.set_num_threads(threads)
    _, _, _, positions, tokens, batch = gpt.NETWORKS[name]
    x = torch.randint(0, tokens, (batch, positions + 1))
    for i in range(WARM + steps):
        if i == WARM:
            begin = time.perf_counter()
        loss = F.cross_entropy(run(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), gpt.CLIP)
        optimizer.step()
        loss.item()
    return batch * positions * steps / (time.perf_counter() - begin)


def dahl_tokens_per_second(args, name):
    _, _, _, positions, tokens, batch = gpt.NETWORKS[name]
    with tempfile.TemporaryDirectory() as directory:
        out, samples = os.path.join(directory, "run"), batch * args.steps
        machine = ["--platform", args.platform] if args.platform else []
        subprocess.run([args.dahl, "execute", "--model", name, "--data", "tokens:%d:%d:%d" % (positions, samples, tokens), "--limit", str(samples),
                        "--epochs", "1", "--batch", str(batch), "--record", "0", "--out", out, *machine], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(os.path.join(out, "summary.json")) as f:
            return batch * positions / json.load(f)["step_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("--platform")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="default: gpt-tiny; there are " + ", ".join(gpt.NETWORKS))
    args = parser.parse_args()
    print("torch %s, %d cores\n" % (torch.__version__, os.cpu_count()))
    print("| network | program | tokens per second, median | range |\n|---|---|--:|--:|", flush=True)
    for name in args.networks or ["gpt-tiny"]:
        ways, figures = list(torch_ways(name)), {}
        for _ in range(args.rounds):
            figures.setdefault("dahl", []).append(dahl_tokens_per_second(args, name))
            for way, *rest in ways:
                figures.setdefault(way, []).append(torch_tokens_per_second(name, *rest, args.steps))
        for way, all in figures.items():
            print("| %s | %s | %.0f | %.0f to %.0f |" % (name, way, statistics.median(all), min(all), max(all)), flush=True)


if __name__ == "__main__":
    main()
