#!/usr/bin/python3
"""Trains vgg and resnet with dahl and with PyTorch, from the same weights on the same random images, and compares them.

    python3 bench/parity/deep.py [--dahl bin/dahl] [NETWORK...]

It needs PyTorch 2 and numpy, and prints a table in Markdown: the largest relative difference of a step's loss, of the
first step and of all, of the running statistics after the last step, and of the loss of an evaluation. In brackets is PyTorch's
largest difference from itself with the images of each batch in the reverse order, by oneDNN and without it: the same mathematics in other
orders of summation (for networks without dropout). Both evaluations are with the weights and running statistics that dahl saved, since two
trainings in float32 end far from each other. The script ends with status 1 where a float64 loss differs by more than 1e-11 and three times
PyTorch's own difference, or an evaluation of either type by more than 1e-5. The networks are torchvision's and have its names; their dropout draws as dahl's does.
"""

import argparse
import csv
import math
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

SEED = 1  # of weights, images, and dahl's training
LABELS = 256  # of 224×224 images, whose networks have 1000 outputs: a label of an IDX file is a byte

VGG = {"vgg11": [64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0],
       "vgg16": [64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0]}


def philox(key, counter):
    """Philox 4x32-10 of Salmon et al., SC 2011, of arrays of uint64 keys and of four words each."""
    mask = np.uint64(0xFFFFFFFF)
    k, c = [key & mask, key >> np.uint64(32)], [np.asarray(w, np.uint64) for w in counter]
    for _ in range(10):
        a, b = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [b >> np.uint64(32) ^ c[1] ^ k[0], b & mask, a >> np.uint64(32) ^ c[3] ^ k[1], a & mask]
        k = [k[0] + np.uint64(0x9E3779B9) & mask, k[1] + np.uint64(0xBB67AE85) & mask]
    return c


class Dropout(nn.Module):
    """Zeros where dahl draws them: by seed, step, the number of layers before, sample and element."""

    def __init__(self, p, before):
        super().__init__()
        self.p, self.before, self.step = p, before, 0

    def forward(self, x):
        if not self.training:
            return x
        self.step += 1
        n, e = x.shape
        zeros = np.zeros(n, np.uint64)
        words = philox(zeros + np.uint64(SEED), [zeros + np.uint64(self.step), zeros, zeros + np.uint64(self.before), np.arange(n)])
        key = (words[0] | words[1] << np.uint64(32))[:, None]
        count = np.broadcast_to(np.arange((e + 3) // 4, dtype=np.uint64), (n, (e + 3) // 4))
        draws = np.stack(philox(np.broadcast_to(key, count.shape), [count, 0 * count, 0 * count, 0 * count]), -1).reshape(n, -1)[:, :e]
        return x * torch.from_numpy(draws >= self.p * 2**32).to(x.dtype) / (1 - self.p)


class VGGNet(nn.Module):
    def __init__(self, filters, large):
        super().__init__()
        layers, channels = [], 3
        for f in filters:
            if f == 0:
                layers.append(nn.MaxPool2d(2))
                continue
            layers.append(nn.Conv2d(channels, f, 3, padding=1))
            layers += [] if large else [nn.BatchNorm2d(f)]
            layers.append(nn.ReLU())
            channels = f
        self.features, self.large = nn.Sequential(*layers), large
        if not large:
            self.classifier = nn.Linear(512, 10)
            return
        before = len(layers) + 1  # and the flatten
        self.classifier = nn.Sequential(
            nn.Linear(512 * 49, 4096), nn.ReLU(), Dropout(0.5, before + 2),
            nn.Linear(4096, 4096), nn.ReLU(), Dropout(0.5, before + 5), nn.Linear(4096, 1000))
        for layer in self.modules():  # torchvision's first weights: with PyTorch's own all images have one output where nothing normalises
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0, 0.01)
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        x = self.features(x)
        if self.large:
            x = F.adaptive_avg_pool2d(x, 7)
        return self.classifier(x.flatten(1))


def conv(i, o, k, stride=1):
    return nn.Conv2d(i, o, k, stride, k // 2, bias=False)


class Block(nn.Module):
    """A basic block, or with a deep one a bottleneck."""

    def __init__(self, channels, filters, stride, deep):
        super().__init__()
        outputs = 4 * filters if deep else filters
        self.deep, self.downsample = deep, None
        if deep:
            self.conv1, self.bn1 = conv(channels, filters, 1), nn.BatchNorm2d(filters)
            self.conv2, self.bn2 = conv(filters, filters, 3, stride), nn.BatchNorm2d(filters)
            self.conv3, self.bn3 = conv(filters, outputs, 1), nn.BatchNorm2d(outputs)
        else:
            self.conv1, self.bn1 = conv(channels, filters, 3, stride), nn.BatchNorm2d(filters)
            self.conv2, self.bn2 = conv(filters, filters, 3), nn.BatchNorm2d(filters)
        if stride > 1 or channels != outputs:
            self.downsample = nn.Sequential(conv(channels, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        around = self.downsample(x) if self.downsample else x
        x = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.deep:
            x = self.bn3(self.conv3(F.relu(x)))
        return F.relu(x + around)


class ResNet(nn.Module):
    def __init__(self, blocks, deep, large):
        super().__init__()
        self.large, channels = large, 64
        self.conv1, self.bn1 = conv(3, 64, 7, 2) if large else conv(3, 64, 3), nn.BatchNorm2d(64)
        for stage, count in enumerate(blocks):
            layers = []
            for i in range(count):
                layers.append(Block(channels, 64 << stage, 2 if i == 0 and stage > 0 else 1, deep))
                channels = (256 if deep else 64) << stage
            setattr(self, "layer%d" % (stage + 1), nn.Sequential(*layers))
        self.fc = nn.Linear(channels, 1000 if large else 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        if self.large:
            x = F.max_pool2d(x, 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def build(name):
    kind, large = name.removesuffix("-224"), name.endswith("-224")
    if kind in VGG:
        return VGGNet(VGG[kind], large)
    return {"resnet18": lambda: ResNet([2, 2, 2, 2], False, large), "resnet50": lambda: ResNet([3, 4, 6, 3], True, large)}[kind]()


# Batch and steps of each network: some have fewer, for their time.
NETWORKS = {"vgg11": (4, 20), "resnet18": (4, 20), "vgg16": (4, 20), "resnet50": (4, 5),
            "vgg11-224": (2, 3), "vgg16-224": (2, 3), "resnet18-224": (2, 3), "resnet50-224": (2, 3)}
RATE, MOMENTUM = 0.01, 0.9


def write_idx(path, values):
    with open(path, "wb") as f:
        f.write(bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">u4").tobytes() + values.tobytes())


def draw(directory, name, batch, steps):
    """Images, labels and weights. The last label of either split is the last class, so that dahl counts all."""
    rng, side, classes = np.random.default_rng(SEED), 224 if name.endswith("-224") else 32, LABELS if name.endswith("-224") else 10
    data = {}
    for split, count in (("train", batch * steps), ("t10k", 2 * batch)):
        images, labels = rng.integers(0, 256, (count, 3, side, side), np.uint8), rng.integers(0, classes, count).astype(np.uint8)
        labels[-1] = classes - 1
        data[split] = images, labels
    torch.manual_seed(SEED)
    state = {k: v.numpy() for k, v in build(name).to(torch.float32).state_dict().items()}
    np.savez(os.path.join(directory, "init.npz"), **state)
    return data, state


def load(name, state, dtype):
    model = build(name).to(dtype)
    model.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})
    return model


def torch_train(name, data, state, dtype, batch, reverse=False):
    model = load(name, state, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    images, labels = (torch.from_numpy(v) for v in data["train"])
    losses = []
    for i in range(0, len(labels), batch):
        x, y = images[i : i + batch].to(dtype) / 255, labels[i : i + batch].long()
        if reverse:
            x, y = x.flip(0), y.flip(0)
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, {k: v.numpy() for k, v in model.state_dict().items()}


def torch_evaluate(name, data, state, dtype):
    images, labels = (torch.from_numpy(v) for v in data["t10k"])
    with torch.no_grad():
        return F.cross_entropy(load(name, state, dtype).eval()(images.to(dtype) / 255), labels.long()).item()


def dahl_run(dahl, directory, name, dtype, batch):
    out = os.path.join(directory, dtype)
    subprocess.run([dahl, "execute", "--model", name, "--data", directory, "--init", os.path.join(directory, "init.npz"), "--shuffle=false",
                    "--epochs", "1", "--batch", str(batch), "--dtype", dtype, "--optimizer", "sgd", "--lr", str(RATE), "--momentum", str(MOMENTUM),
                    "--weight-decay", "0", "--seed", str(SEED), "--devices", "cpu", "--out", out], check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "steps.csv")) as f:
        losses = [float(row["loss"]) for row in csv.DictReader(f)]
    with open(os.path.join(out, "epochs.csv")) as f:
        evaluated = float(next(csv.DictReader(f))["test_loss"])
    return losses, dict(np.load(os.path.join(out, "weights.npz"))), evaluated


def differences(a, b):
    """Of the first loss and of all, and of the running statistics by the largest of each tensor."""
    running = 0.0
    for k, v in b[1].items():
        if "num_batches" in k:
            assert a[1][k] == v and a[1][k].dtype == np.int64 and a[1][k].shape == (), (k, a[1][k], v)
        elif "running" in k:
            running = max(running, np.abs(a[1][k] - v).max() / np.abs(v).max())
    assert list(a[1]) == list(b[1]), "the names differ"
    losses = [abs(x - y) / abs(y) for x, y in zip(a[0], b[0], strict=True)]
    return losses[0], max(losses), running


def own_differences(name, data, state, dtype, batch, want):
    """The largest of PyTorch's differences from itself in other orders of summation."""
    runs = []
    for onednn in (True, False):
        with torch.backends.mkldnn.flags(enabled=onednn, allow_tf32=None):
            runs.append(differences(torch_train(name, data, state, dtype, batch, reverse=True), want))
    return [max(values) for values in zip(*runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="default: all of " + ", ".join(NETWORKS))
    args, failed = parser.parse_args(), False
    print("torch %s, numpy %s\n" % (torch.__version__, np.__version__))
    print("| network | type | batch | steps | first loss | losses | running statistics | evaluation |\n|---|---|--:|--:|--:|--:|--:|--:|", flush=True)
    for name in args.networks or NETWORKS:
        batch, steps = NETWORKS[name]
        with tempfile.TemporaryDirectory() as directory:
            data, state = draw(directory, name, batch, steps)
            for split, (images, labels) in data.items():
                write_idx(os.path.join(directory, split + "-images-idx4-ubyte"), images)
                write_idx(os.path.join(directory, split + "-labels-idx1-ubyte"), labels)
            for dtype in ("float64", "float32"):
                of = getattr(torch, dtype)
                want = torch_train(name, data, state, of, batch)
                losses, trained, evaluated = dahl_run(args.dahl, directory, name, dtype, batch)
                got = differences((losses, trained), want)
                same = torch_evaluate(name, data, trained, of)
                evaluation = abs(evaluated - same) / abs(same)
                drops = name.startswith("vgg") and name.endswith("-224")
                own = None if drops else own_differences(name, data, state, of, batch, want)
                cells = ["%.1e" % v + ("" if own is None else " (%.1e)" % own[i]) for i, v in enumerate(got)] + ["%.1e" % evaluation]
                cells[2] = "–" if drops else cells[2]  # they have no normalisation
                print("| %s | %s | %d | %d | %s |" % (name, dtype, batch, steps, " | ".join(cells)), flush=True)
                failed = failed or dtype == "float64" and got[1] > max(1e-11, 3 * own[1] if own else 0)
                failed = failed or not math.isfinite(sum(got)) or not evaluation <= 1e-5
    sys.exit(1 if failed else 0)


main()
