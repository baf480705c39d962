#!/usr/bin/python3
"""Compares transformers of dahl with PyTorch's in float64, from the same weights on the same samples.

    python3 bench/parity/transformers.py [--dahl bin/dahl] [--steps 50] [--random 60] [--seed 1]

A BERT with padding and two parts of a sample, a vision transformer and a Llama, of two layers each, are trained for some steps: the losses are compared. Random transformers make one
step of stochastic gradient descent at the rate 1, so that what the weights lose is their gradient. Their extents are pairwise different primes, and
each draws its norm, before or behind a block, its positions, heads that share keys, causal or not, window, padding, function or SwiGLU, and whether the last layer has the table of
the first. A network is written down once, as a list of layers: as a model file for dahl, and run layer by layer by PyTorch's own functions.

It needs PyTorch 2 and numpy, prints tables in Markdown, and ends with status 1 where a loss differs by more than 1e-9 of itself, or a gradient by more than 1e-9 of
the largest of its parameter.
"""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch.nn import functional as F

BOUND = 1e-9
PADDING, SEPARATOR = 0, 1


class Network:
    """A list of layers as a model file has them, and the weights with which they begin."""

    def __init__(self, name, sample, seed):
        self.name, self.sample, self.layers, self.params, self.shapes = name, sample, [], {}, {"input": sample}
        self.draw, self.last, self.extra = torch.Generator().manual_seed(seed), "input", {}

    def add(self, kind, inputs=None, **settings):
        name = "%s_%d" % (kind, len(self.layers))
        inputs = inputs or [self.last]
        layer = {"kind": kind, "name": name, "input": inputs, **settings}
        self.layers.append(layer)
        x = self.shapes[inputs[0]]
        new = lambda of, *shape: self.params.__setitem__(name + "." + of, torch.randn(*shape, generator=self.draw, dtype=torch.float64) * 0.3)
        if kind == "embedding":
            new("weight", settings["tokens"], settings["width"])
            self.shapes[name] = [x[0], settings["width"]]
        elif kind == "dense":
            if "weights_of" not in settings:
                new("weight", settings["outputs"], x[-1])
            if settings.get("bias", True):
                new("bias", settings["outputs"])
            self.shapes[name] = x[:-1] + [settings["outputs"]]
        elif kind in ("layernorm", "rmsnorm"):
            new("weight", x[-1])
            if kind == "layernorm":
                new("bias", x[-1])
            self.shapes[name] = x
        elif kind == "positions":
            new("weight", *x)
            self.shapes[name] = x
        elif kind == "conv2d":
            k = settings["kernel"]
            new("weight", settings["filters"], x[0], k, k)
            new("bias", settings["filters"])
            self.shapes[name] = [settings["filters"], x[1] // k, x[2] // k]
        elif kind == "attention":
            all_heads = settings["heads"] + 2 * settings.get("key_heads", settings["heads"])
            self.shapes[name] = [x[0], x[1] // all_heads * settings["heads"]]
        elif kind == "pixels":
            self.shapes[name] = [x[1] * x[2], x[0]] if len(x) == 3 else [x[1], x[0], 1]
        elif kind == "globalavgpool":
            self.shapes[name] = [x[0], 1, 1]
        elif kind == "flatten":
            self.shapes[name] = [x[0] * x[1] * x[2]]
        else:
            self.shapes[name] = x
        self.last = name
        return name

    def model_file(self, train):
        value = lambda v: {bool: lambda: str(v).lower(), str: lambda: '"%s"' % v, list: lambda: "[%s]" % ", ".join(map(value, v))}.get(type(v), lambda: repr(v))()
        lines = ["name = %s" % value(self.name), "input = %s" % value(self.sample), "[train]"] + ["%s = %s" % (k, value(v)) for k, v in train.items()]
        for layer in self.layers:
            lines += ["[[layer]]"] + ["%s = %s" % (k, value(v)) for k, v in layer.items()]
        return "\n".join(lines) + "\n"

    def run(self, x, params):
        values = {"input": x}
        for layer in self.layers:
            of = [params[k] for k in (layer["name"] + ".weight", layer["name"] + ".bias") if k in params]
            if "weights_of" in layer:
                of = [params[layer["weights_of"]]] + of
            x = values[layer["name"]] = APPLY[layer["kind"]](layer, *[values[k] for k in layer["input"]], *of)
        return x


def attention(l, x, *mask):
    heads, keys = l["heads"], l.get("key_heads", l["heads"])
    width, positions = x.shape[-1] // (heads + 2 * keys), x.shape[1]
    q, k, v = (p.unflatten(-1, (-1, width)).transpose(1, 2) for p in x.split([heads * width, keys * width, keys * width], -1))
    distance = torch.arange(positions)[:, None] - torch.arange(positions)[None, :]
    side = l.get("window", 0) or positions
    seen = (distance < side) & (distance > (-1 if l.get("causal") else -side))
    for m in mask:
        seen = seen & m[:, None, None]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True).transpose(1, 2).flatten(2)


def rotary(l, x):
    heads, width = l["heads"], l["width"]
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    turned = torch.view_as_complex(torch.stack(x[..., :heads * width].unflatten(-1, (heads, 2, width // 2)).unbind(-2), -1).contiguous())
    turned = torch.view_as_real(turned * torch.polar(torch.ones_like(angles), angles)[:, None])
    return torch.cat([torch.cat(turned.unbind(-1), -1).flatten(2), x[..., heads * width:]], -1)


APPLY = {
    "embedding": lambda l, x, w: F.embedding(x.long(), w),
    "mask": lambda l, x: x != l["token"],
    "segments": lambda l, x: (torch.cumsum(x == l["token"], 1) - (x == l["token"]).long() == 1).long(),
    "positions": lambda l, x, w: x + w,
    "dense": lambda l, x, *w: F.linear(x, *w),
    "conv2d": lambda l, x, w, b: F.conv2d(x, w, b, stride=l["stride"]),
    "pixels": lambda l, x: x.flatten(2).transpose(1, 2) if x.dim() == 4 else x.transpose(1, 2)[..., None],
    "globalavgpool": lambda l, x: x.mean((2, 3), keepdim=True),
    "flatten": lambda l, x: x.flatten(1),
    "layernorm": lambda l, x, w, b: F.layer_norm(x, x.shape[-1:], w, b),
    "rmsnorm": lambda l, x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5),
    "attention": attention,
    "rotary": rotary,
    "add": lambda l, x, y: x + y,
    "multiply": lambda l, x, y: x * y,
    "gelu": lambda l, x: F.gelu(x),
    "gelu_tanh": lambda l, x: F.gelu(x, approximate="tanh"),
    "silu": lambda l, x: F.silu(x),
}


def block(n, o):
    """Attention and what follows it, before or behind which a norm stands."""
    width, before = n.shapes[n.last][-1], n.last

    def to_sum():
        nonlocal before
        before = n.add("add", [before, n.last])
        if o["post"]:
            before = n.add(o["norm"])

    if not o["post"]:
        n.add(o["norm"])
    n.add("dense", outputs=(o["heads"] + 2 * o["keys"]) * o["head"], bias=o["bias"])
    if o["positions"] == "rotary":
        n.add("rotary", heads=o["heads"] + o["keys"], width=o["head"])
    window = {"window": o["window"]} if o["window"] else {}
    n.add("attention", [n.last] + o["mask"], heads=o["heads"], key_heads=o["keys"], causal=o["causal"], **window)
    n.add("dense", outputs=width, bias=o["bias"])
    to_sum()
    read = before if o["post"] else n.add(o["norm"])
    up = n.add("dense", [read], outputs=o["hidden"], bias=o["bias"])
    if o["function"] == "swiglu":
        gate = n.add("silu")
        n.add("multiply", [gate, n.add("dense", [read], outputs=o["hidden"], bias=o["bias"])])
    else:
        n.add(o["function"], [up])
    n.add("dense", outputs=width, bias=o["bias"])
    to_sum()


def tokens_network(name, seed, o):
    n = Network(name, [o["T"]], seed)
    o["mask"] = [n.add("mask", ["input"], token=PADDING)] if o["padding"] else []
    table = n.add("embedding", ["input"], tokens=o["tokens"], width=o["width"])
    if o["segments"]:
        kinds = n.add("segments", ["input"], token=SEPARATOR)
        n.add("add", [table, n.add("embedding", [kinds], tokens=2, width=o["width"])])
    if o["positions"] == "learned":
        n.add("positions")
    if o["post"]:
        n.add(o["norm"])
    for _ in range(o["layers"]):
        block(n, o)
    if not o["post"]:
        n.add(o["norm"])
    tied = {"weights_of": table + ".weight"} if o["tied"] else {}
    n.add("dense", outputs=o["tokens"], bias=o["bias"], **tied)
    return n


def tokens_data(rng, o, samples):
    """Each token has a successor of its own, which follows it seven times of eight. Padding is at the end, and has no label."""
    x = rng.integers(2, o["tokens"], (samples, o["T"] + 1))
    successor = 2 + rng.permutation(o["tokens"] - 2)
    for t in range(o["T"]):
        x[:, t + 1] = np.where(rng.integers(0, 8, samples) > 0, successor[x[:, t] - 2], x[:, t + 1])
    x, y = x[:, :-1].copy(), x[:, 1:].copy()
    if o["segments"]:
        for row, at in enumerate(rng.integers(0, o["T"] - 1, samples)):
            x[row, [at, -1]] = SEPARATOR
    if o["padding"]:
        for row, kept in enumerate(rng.integers(2, o["T"] + 1, samples)):
            x[row, kept:], y[row, kept:] = PADDING, -1
    x[0, 0] = y[0, 0] = o["tokens"] - 1  # so that dahl counts all
    return x.astype(np.int32), y.astype(np.int32)


def loss_of(n, params, x, y):
    out, y = n.run(torch.from_numpy(x), params), torch.from_numpy(y).long().flatten()
    return F.cross_entropy(out.reshape(len(y), -1), y, ignore_index=-1)


def dahl_train(dahl, directory, n, x, y, train, batch):
    path = lambda name: os.path.join(directory, name)
    with open(path("model.toml"), "w") as f:
        f.write(n.model_file(train))
    np.savez(path("data.npz"), x=x, y=y)
    np.savez(path("init.npz"), **{k: v.detach().numpy() for k, v in n.params.items()})
    run = subprocess.run([dahl, "execute", "--model", path("model.toml"), "--data", path("data.npz"), "--init", path("init.npz"), "--shuffle=false", "--epochs", "1", "--batch", str(batch),
                          "--dtype", "float64", "--devices", "cpu", "--policy", "heft", "--out", path("run")], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit("%s: %s\n%s" % (n.name, run.stderr, n.model_file(train)))
    with open(path("run/steps.csv")) as f:
        return [float(row["loss"]) for row in csv.DictReader(f)], dict(np.load(path("run/weights.npz")))


def trained(dahl, n, x, y, batch, steps):
    """The losses of dahl and of PyTorch by AdamW, with decay of matrices alone."""
    train = {"optimizer": "adamw", "lr": 0.001, "beta2": 0.99, "weight_decay": 0.1, "decay_dims": 2, "ignored_labels": bool((y == -1).any())}
    with tempfile.TemporaryDirectory() as directory:
        got, _ = dahl_train(dahl, directory, n, x, y, train, batch)
    params = {k: v.clone().requires_grad_() for k, v in n.params.items()}
    groups = [{"params": [p for p in params.values() if (p.dim() >= 2) == decays], "weight_decay": 0.1 * decays} for decays in (True, False)]
    optimizer, want = torch.optim.AdamW(groups, lr=0.001, betas=(0.9, 0.99)), []
    for i in range(steps):
        loss = loss_of(n, params, x[i * batch:][:batch], y[i * batch:][:batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        want.append(loss.item())
    worst = max(abs(a - b) / abs(b) for a, b in zip(got, want, strict=True))
    print("| %s | %d | %d | %d | %.1e | %.4f to %.4f |" % (n.name, sum(p.numel() for p in params.values()), batch, steps, worst, want[0], want[-1]), flush=True)
    return worst <= BOUND


def gradients(dahl, n, x, y):
    """The largest difference of a gradient in units of the largest of its parameter, with its parameter."""
    train = {"optimizer": "sgd", "lr": 1.0, "ignored_labels": bool((y == -1).any())}
    with tempfile.TemporaryDirectory() as directory:
        got, after = dahl_train(dahl, directory, n, x, y, train, len(x))
    params = {k: v.clone().requires_grad_() for k, v in n.params.items()}
    loss = loss_of(n, params, x, y)
    loss.backward()
    worst = (abs(got[0] - loss.item()) / abs(loss.item()), "loss")
    for k, p in params.items():
        difference, most = np.abs(p.detach().numpy() - after[k] - p.grad.numpy()).max(), p.grad.abs().max().item()
        worst = max(worst, (difference / max(most, 1e-6), k))
    return worst


PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41]


def random_options(rng):
    small, large = rng.sample(PRIMES[:3], 2), rng.sample(PRIMES[3:], 6)
    o = {"positions": rng.choice(["learned", "rotary", "none"]), "norm": rng.choice(["layernorm", "rmsnorm"]), "post": rng.random() < 0.4, "causal": rng.random() < 0.5,
         "function": rng.choice(["gelu", "gelu_tanh", "swiglu"]), "tied": rng.random() < 0.5, "padding": rng.random() < 0.5, "segments": rng.random() < 0.3, "bias": rng.random() < 0.5,
         "layers": rng.choice([1, 2]), "keys": small[0], "T": large[0], "tokens": large[1], "width": large[2], "hidden": large[3], "head": large[4], "batch": large[5]}
    o["heads"] = small[0] * rng.choice([1, small[1]])
    o["window"] = rng.choice([0, 0, 3])
    if o["positions"] == "rotary":
        o["head"] *= 2  # pairs
    return o


def vit(seed):
    n = Network("vit", [3, 22, 33], seed)
    n.add("conv2d", filters=38, kernel=11, stride=11)
    n.add("pixels")
    n.add("positions")
    o = {"heads": 2, "keys": 2, "head": 19, "norm": "layernorm", "post": False, "positions": "learned", "causal": False, "window": 0, "mask": [], "bias": True, "hidden": 53, "function": "gelu"}
    block(n, o)
    block(n, o)
    for kind in ("layernorm", "pixels", "globalavgpool", "flatten"):
        n.add(kind)
    n.add("dense", outputs=7)
    return n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--random", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args, passed = parser.parse_args(), True
    rng = np.random.default_rng(args.seed)
    print("torch %s, numpy %s\n" % (torch.__version__, np.__version__))
    print("| network | weights | batch | steps | losses differ by | losses |\n|---|--:|--:|--:|--:|--:|", flush=True)
    bert = {"T": 37, "tokens": 61, "width": 48, "heads": 3, "keys": 3, "head": 16, "hidden": 193, "norm": "layernorm", "post": True, "positions": "learned", "causal": False, "window": 0,
            "function": "gelu", "tied": True, "padding": True, "segments": True, "bias": True, "layers": 2}
    llama = {**bert, "keys": 1, "norm": "rmsnorm", "post": False, "positions": "rotary", "causal": True, "function": "swiglu", "tied": False, "padding": False, "segments": False, "bias": False}
    for name, o in (("bert", bert), ("llama", llama)):
        passed &= trained(args.dahl, tokens_network(name, args.seed, o), *tokens_data(rng, o, 8 * args.steps), 8, args.steps)
    classes = rng.integers(0, 7, 13 * args.steps)
    images = rng.standard_normal((len(classes), 3, 22, 33)) + rng.standard_normal((7, 3, 22, 33))[classes]
    classes[0] = 6
    passed &= trained(args.dahl, vit(args.seed), images, classes.astype(np.int32), 13, args.steps)

    draw, all_of = random.Random(args.seed), []
    for i in range(args.random):
        o = random_options(draw)
        n = tokens_network("random%d" % i, args.seed + i, o)
        worst, where = gradients(args.dahl, n, *tokens_data(rng, o, o["batch"]))
        all_of.append(worst)
        if not worst <= BOUND:
            passed = False
            print("random%d: %s differs by %.1e: %s" % (i, where, worst, o), flush=True)
    if all_of:
        print("\n%d random transformers: gradients differ by at most %.1e, in the median by %.1e" % (len(all_of), max(all_of), np.median(all_of)))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
