#!/usr/bin/python3
"""The PyTorch twin of `dahl execute`: same weights, same data order, same arithmetic type.

Make the initial weights once, then train from them:

    torch_parity.py init  --model lenet5 --seed 1 --out init.npz
    torch_parity.py train --model lenet5 --init init.npz --data DIR --epochs 5 \
        --dtype float64 --steps-csv steps.csv --epochs-csv epochs.csv --save final.npz

DIR holds IDX files as MNIST names them (train- or train10k-, t10k-), plain or gzip. The samples are
taken in their order, the last short batch included. Written for PyTorch 1.13; one thread.

--order N turns the samples of every training batch around in a seeded order. The mathematics stays the
same and only the order of summation changes, so such runs show how far PyTorch is from itself.
"""

import argparse
import csv
import gzip
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class LeNet5(nn.Module):
    defaults = {"lr": 0.1, "batch": 32}

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


class DahlCNN(nn.Module):
    defaults = {"lr": 1e-3, "batch": 10}

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.fc1 = nn.Linear(4 * 13 * 13, 10)

    def forward(self, x):
        return self.fc1(F.max_pool2d(F.relu(self.conv1(x)), 2).flatten(1))


class Residual(nn.Module):
    """nn/examples/residual.toml."""

    defaults = {"lr": 0.1, "batch": 32}

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1)
        self.conv3 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc1 = nn.Linear(24, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.gelu(x + self.conv2(x)), 2)
        x = torch.cat([x, F.relu(self.conv3(x))], 1)
        return self.fc1(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Depthwise(nn.Module):
    """nn/examples/depthwise.toml."""

    defaults = {"lr": 0.1, "batch": 32}

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, (3, 5), padding=(1, 2), stride=(1, 2))
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.conv3 = nn.Conv2d(8, 16, 1)
        self.conv4 = nn.Conv2d(16, 32, 3, padding=2, dilation=2, groups=16)
        self.conv5 = nn.Conv2d(32, 24, 3, groups=2)
        self.fc1 = nn.Linear(24 * 6 * 6, 10)

    def forward(self, x):
        x = F.relu(self.conv3(self.conv2(F.relu(self.conv1(x)))))
        x = self.conv4(F.max_pool2d(x, (4, 2)))
        x = F.relu(self.conv5(F.pad(x, (1, 0, 1, 0))))
        return self.fc1(x.flatten(1))


MODELS = {"lenet5": LeNet5, "dahl-cnn": DahlCNN, "residual": Residual, "depthwise": Depthwise}


def read_idx(directory, prefixes, kind, rank):
    """The array of the one IDX file of that kind; more than one prefix present is an error."""
    found = []
    for prefix in prefixes:
        for suffix in ("", ".gz"):
            path = os.path.join(directory, f"{prefix}-{kind}-idx{rank}-ubyte{suffix}")
            if os.path.exists(path):
                found.append(path)
                break
    if len(found) != 1:
        raise SystemExit(f"{directory}: {len(found)} files of {kind} for {' or '.join(prefixes)}; one is needed")
    with (gzip.open if found[0].endswith(".gz") else open)(found[0], "rb") as f:
        raw = f.read()
    if raw[:4] != bytes([0, 0, 8, rank]):
        raise SystemExit(f"{found[0]}: not an IDX file of bytes of rank {rank}")
    shape = np.frombuffer(raw, ">u4", rank, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(tuple(int(n) for n in shape))


def load(directory, prefixes, dtype):
    images = read_idx(directory, prefixes, "images", 3)
    labels = read_idx(directory, prefixes, "labels", 1)
    assert len(images) == len(labels)
    x = torch.from_numpy(images.copy()).unsqueeze(1).to(dtype) / 255
    return x, torch.from_numpy(labels.astype(np.int64))


def make_init(args):
    """PyTorch's default distribution, U(±1/sqrt(fan_in)), from numpy's generator."""
    torch.manual_seed(0)  # the module's own weights are not used
    rng = np.random.default_rng(args.seed)
    arrays, bound = {}, None
    for name, p in MODELS[args.model]().state_dict().items():
        if name.endswith(".weight"):  # the bias that follows has the same bound
            bound = 1 / np.sqrt(np.prod(p.shape[1:]))
        arrays[name] = rng.uniform(-bound, bound, tuple(p.shape))
    np.savez(args.out, **arrays)


def evaluate(model, x, y, batch):
    model.eval()
    loss, correct = 0.0, 0
    with torch.no_grad():
        for i in range(0, len(y), batch):
            z = model(x[i : i + batch])
            loss += F.cross_entropy(z, y[i : i + batch], reduction="sum").item()
            correct += int((z.argmax(1) == y[i : i + batch]).sum())
    model.train()
    return loss / len(y), correct / len(y)


def epoch_steps(model, optimizer, x, y, batch, reorder=None):
    """Trains on all images as they lie. After each step it yields the number of images, their mean loss before the
    update, and how many were classified right. reorder draws another order of summation for each batch."""
    for i in range(0, len(y), batch):
        images, target = x[i : i + batch], y[i : i + batch]
        if reorder is not None:
            order = torch.from_numpy(reorder.permutation(len(target)))
            images, target = images[order], target[order]
        z = model(images)
        loss = F.cross_entropy(z, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield len(target), loss.item(), int((z.argmax(1) == target).sum())


def train(args):
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.enabled = args.mkldnn
    dtype = {"float32": torch.float32, "float64": torch.float64}[args.dtype]
    model = MODELS[args.model]().to(dtype)
    init = np.load(args.init)
    model.load_state_dict({k: torch.from_numpy(init[k]).to(dtype) for k in init.files})
    batch = args.batch or model.defaults["batch"]
    reorder = None if args.order is None else np.random.default_rng(args.order)
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr or model.defaults["lr"])
    x, y = load(args.data, ["train", "train10k"], dtype)
    test_x, test_y = load(args.data, ["t10k", "test"], dtype)

    with open(args.steps_csv, "w", newline="") as steps_file, open(args.epochs_csv, "w", newline="") as epochs_file:
        steps = csv.writer(steps_file, lineterminator="\n")
        epochs = csv.writer(epochs_file, lineterminator="\n")
        steps.writerow(["epoch", "step", "images", "loss", "correct"])
        epochs.writerow(["epoch", "loss", "accuracy", "test_loss", "test_accuracy",
                         "seconds", "images_per_s", "joules", "joules_source"])
        step = 0
        for epoch in range(1, args.epochs + 1):
            start, loss_sum, correct_sum = time.monotonic(), 0.0, 0
            for images, loss, correct in epoch_steps(model, optimizer, x, y, batch, reorder):
                step += 1
                loss_sum += loss * images
                correct_sum += correct
                steps.writerow([epoch, step, images, f"{loss:.17g}", correct])
            seconds = time.monotonic() - start
            test_loss, test_accuracy = evaluate(model, test_x, test_y, 1000)
            epochs.writerow([epoch, f"{loss_sum / len(y):.17g}", f"{correct_sum / len(y):.17g}",
                             f"{test_loss:.17g}", f"{test_accuracy:.17g}", f"{seconds:.3f}",
                             f"{len(y) / seconds:.1f}", "", ""])
            epochs_file.flush()
            print(f"{args.model} {args.dtype} epoch {epoch}: loss {loss_sum / len(y):.6f}, "
                  f"test accuracy {test_accuracy:.4f}, {seconds:.1f} s", flush=True)
    if args.save:
        np.savez(args.save, **{k: v.numpy() for k, v in model.state_dict().items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    p = commands.add_parser("init", help="write initial weights")
    p.add_argument("--model", choices=MODELS, required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out", required=True)
    p.set_defaults(run=make_init)
    p = commands.add_parser("train", help="train and write the curves")
    p.add_argument("--model", choices=MODELS, required=True)
    p.add_argument("--init", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--epochs", type=int, default=5)
    p.add_argument("--batch", type=int, help="default: the model's")
    p.add_argument("--lr", type=float, help="default: the model's")
    p.add_argument("--dtype", choices=["float32", "float64"], default="float64")
    p.add_argument("--order", type=int, metavar="N", help="another order of summation: permute within each batch")
    p.add_argument("--mkldnn", action="store_true", help="oneDNN's kernels, another order of summation (float32)")
    p.add_argument("--steps-csv", required=True)
    p.add_argument("--epochs-csv", required=True)
    p.add_argument("--save", help="write the trained weights")
    p.set_defaults(run=train)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
