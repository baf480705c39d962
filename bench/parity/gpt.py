#!/usr/bin/python3
"""Trains a GPT with dahl and with PyTorch, from the same weights on the same tokens, and compares the losses. Each token has a successor of its own,
which follows it seven times of eight, so that the losses fall.

    python3 bench/parity/gpt.py [--dahl bin/dahl] [--steps 50] [--dtype float64] [NETWORK...]

It needs PyTorch 2 and numpy, and prints a table in Markdown: the largest relative difference of a step's loss, of the first step and of all, in brackets
PyTorch's largest difference from itself with the samples of each batch in the reverse order; in bfloat16 PyTorch trains under autocast. The networks are written down here after nanoGPT's
model.py, with the function of PyTorch for attention. The script ends with status 1 where a float64 loss differs by more than 1e-9.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED = 1
# Layers, heads, features, positions, tokens and batch.
NETWORKS = {"gpt-tiny": (4, 4, 128, 64, 256, 12), "gpt-char": (6, 6, 384, 256, 256, 8), "gpt2": (12, 12, 768, 1024, 50257, 1)}
RATE, BETAS, DECAY, CLIP = 1e-3, (0.9, 0.99), 0.1, 1.0


class Attention(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.c_attn(x).chunk(3, -1))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(width), Attention(heads, width), nn.LayerNorm(width), MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, positions, tokens):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(tokens, width), "wpe": nn.Embedding(positions, width),
            "h": nn.ModuleList(Block(heads, width) for _ in range(layers)), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, tokens, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        for layer in self.modules():
            if isinstance(layer, (nn.Linear, nn.Embedding)):
                nn.init.normal_(layer.weight, 0, 0.02)
            if isinstance(layer, nn.Linear) and layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def forward(self, tokens):
        x = self.transformer.wte(tokens) + self.transformer.wpe.weight
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


def build(name):
    torch.manual_seed(SEED)
    return GPT(*NETWORKS[name][:5])


def torch_train(name, dtype, x, y, batch, reverse=False):
    model = build(name).to(torch.float32 if dtype is torch.bfloat16 else dtype)
    matrices, vectors = [p for p in model.parameters() if p.dim() >= 2], [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}], lr=RATE, betas=BETAS)
    losses = []
    for i in range(0, len(x), batch):
        tokens, labels = torch.from_numpy(x[i:i + batch]), torch.from_numpy(y[i:i + batch])
        if reverse:
            tokens, labels = tokens.flip(0), labels.flip(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype is torch.bfloat16):
            loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def dahl_train(dahl, directory, name, dtype, batch):
    out = os.path.join(directory, "run")
    subprocess.run([dahl, "execute", "--model", name, "--data", os.path.join(directory, "data.npz"), "--init", os.path.join(directory, "init.npz"),
                    "--shuffle=false", "--epochs", "1", "--batch", str(batch), "--dtype", dtype, "--optimizer", "adamw", "--lr", str(RATE),
                    "--weight-decay", str(DECAY), "--clip-norm", str(CLIP), "--devices", "cpu", "--policy", "heft", "--out", out],
                   check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "steps.csv")) as f:
        return [float(row["loss"]) for row in csv.DictReader(f)]


def differences(a, b):
    all = [abs(x - y) / abs(y) for x, y in zip(a, b, strict=True)]
    return all[0], max(all)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--dtype", default="float64", choices=["float64", "float32", "bfloat16"])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="default: gpt-tiny; there are " + ", ".join(NETWORKS))
    args, failed = parser.parse_args(), False
    print("torch %s, numpy %s\n" % (torch.__version__, np.__version__))
    print("| network | type | batch | steps | first loss | losses | last loss |\n|---|---|--:|--:|--:|--:|--:|", flush=True)
    for name in args.networks or ["gpt-tiny"]:
        _, _, _, positions, tokens, batch = NETWORKS[name]
        rng = np.random.default_rng(SEED)
        text, successor = rng.integers(0, tokens, (batch * args.steps, positions + 1)), rng.permutation(tokens)
        for t in range(positions):
            text[:, t + 1] = np.where(rng.integers(0, 8, len(text)) > 0, successor[text[:, t]], text[:, t + 1])
        text[0, 0] = text[0, -1] = tokens - 1  # so that dahl counts all
        x, y = np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(text[:, 1:])
        with tempfile.TemporaryDirectory() as directory:
            np.savez(os.path.join(directory, "data.npz"), x=x.astype(np.int32), y=y.astype(np.int32))
            np.savez(os.path.join(directory, "init.npz"), **{k: v.numpy() for k, v in build(name).state_dict().items() if k != "lm_head.weight"})
            losses = dahl_train(args.dahl, directory, name, args.dtype, batch)
        dtype = getattr(torch, args.dtype)
        want = torch_train(name, dtype, x, y, batch)
        got, own = differences(losses, want), differences(torch_train(name, dtype, x, y, batch, reverse=True), want)
        print("| %s | %s | %d | %d | %s | %.6f |" % (name, args.dtype, batch, len(want), " | ".join("%.1e (%.1e)" % p for p in zip(got, own)), want[-1]), flush=True)
        failed = failed or args.dtype == "float64" and not got[1] <= 1e-9
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
