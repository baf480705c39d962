#!/usr/bin/python3
"""Trains LeNet-5 with dahl or PyTorch from the weights and in the orders that both programs draw.

    go run ./bench/parity/seeds/draws OUT 60 5 10000   # what dahl draws
    seeds_train.py draw --out OUT                      # what PyTorch draws
    seeds_train.py train --program dahl --dahl bin/dahl --data DIR --out OUT
    seeds_train.py train --program torch --data DIR --out OUT
    seeds_train.py collect --out OUT >seeds.csv

A training is OUT/TYPE.SEED.WEIGHTS.ORDER.PROGRAM.npz: the loss of every step, how many images of every step were
classified right, and how many test images after every epoch. One that is there is not run again, so that interrupted
commands go on. README.md says what is trained and why.
"""

import argparse
import csv
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import torch_parity as twin

CROSSED_SEEDS = range(1, 31)
EXACT_SEEDS = range(1, 4)  # those that are also trained in float64
FRESH_SEEDS = range(31, 61)  # those that each program trains from its own weights in its own order
EPOCHS, IMAGES, BATCH, RATE = 5, 10_000, 32, 0.1
PROGRAMS = "dahl", "torch"
TYPES = {"float32": torch.float32, "float64": torch.float64}


def draw(args):
    """Writes the weights and orders that a PyTorch program with a seed has: the modules draw first, then the loader."""
    for seed in *CROSSED_SEEDS, *FRESH_SEEDS:
        torch.manual_seed(seed)
        weights = twin.LeNet5().state_dict()
        np.savez(f"{args.out}/torch.{seed}.weights.npz", **{name: w.numpy() for name, w in weights.items()})
        # A batch of all images: the order does not depend on the size of the batches.
        loader = torch.utils.data.DataLoader(torch.arange(IMAGES), batch_size=IMAGES, shuffle=True)
        orders = [next(iter(loader)).numpy() for _ in range(EPOCHS)]
        np.savez(f"{args.out}/torch.{seed}.order.npz", order=np.array(orders, np.int32))


def plan(program):
    """The type, seed, weights and order of each training of a program."""
    for dtype, seeds in ("float32", CROSSED_SEEDS), ("float64", EXACT_SEEDS):
        for weights, order, seed in itertools.product(PROGRAMS, PROGRAMS, seeds):
            yield dtype, seed, weights, order
    for seed in FRESH_SEEDS:
        yield "float32", seed, program, program


def train(args):
    torch.set_num_threads(1)
    trainer = Dahl(args) if args.program == "dahl" else Torch(args)
    for dtype, seed, weights, order in plan(args.program):
        path = f"{args.out}/{dtype}.{seed}.{weights}.{order}.{args.program}.npz"
        if os.path.exists(path):
            continue
        orders = np.load(f"{args.out}/{order}.{seed}.order.npz")["order"]
        losses, correct, tested = trainer.train(f"{args.out}/{weights}.{seed}.weights.npz", orders, dtype)
        if args.program == weights == order == "dahl":
            trainer.check(seed, dtype, losses, tested)
        unfinished = f"{path}.{os.getpid()}.npz"
        np.savez(unfinished, losses=losses, correct=correct, tested=tested)
        os.rename(unfinished, path)
        print(f"{path}: {[int(n) for n in tested]} of the test images", flush=True)


class Torch:
    """PyTorch with its default settings."""

    def __init__(self, args):
        self.directory, self.data = args.data, {}

    def load(self, dtype):
        if dtype not in self.data:
            self.data = {dtype: [twin.load(self.directory, names, TYPES[dtype]) for names in (["train", "train10k"], ["t10k", "test"])]}
        return self.data[dtype]

    def train(self, weights, orders, dtype):
        (x, y), (test_x, test_y) = self.load(dtype)
        model = twin.LeNet5().to(TYPES[dtype])  # before it takes the weights, which float32 would round
        model.load_state_dict({name: torch.from_numpy(w) for name, w in np.load(weights).items()})
        optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
        steps, tested = [], []
        for order in torch.from_numpy(orders.astype(np.int64)):
            steps += twin.epoch_steps(model, optimizer, x[order], y[order], BATCH)
            tested.append(round(twin.evaluate(model, test_x, test_y, 1000)[1] * len(test_y)))
        return [loss for _, loss, _ in steps], [correct for _, _, correct in steps], tested


class Dahl:
    """dahl execute, once for each epoch: its data set is in the order of the epoch, its initial weights are those of
    the epoch before. Without momentum nothing else goes from one epoch to the next."""

    def __init__(self, args):
        self.program, self.directory = args.dahl, args.data
        self.images = twin.read_idx(args.data, ["train", "train10k"], "images", 3)
        self.labels = twin.read_idx(args.data, ["train", "train10k"], "labels", 1)

    def train(self, weights, orders, dtype):
        results = []
        with tempfile.TemporaryDirectory() as scratch:
            for epoch, order in enumerate(orders):
                data = os.path.join(scratch, "data")
                self.write(data, order)
                trained = os.path.join(scratch, f"{epoch}.npz")
                results.append(self.execute(dtype, 1, ["--data", data, "--shuffle=false", "--init", weights, "--save", trained]))
                weights = trained
        return [sum(column, []) for column in zip(*results)]

    def check(self, seed, dtype, losses, tested):
        """Holds a training by epochs to dahl's own in one run."""
        own_losses, _, own_tested = self.execute(dtype, EPOCHS, ["--data", self.directory, "--seed", str(seed)])
        if own_losses != losses or own_tested != tested:
            raise SystemExit(f"seed {seed}: dahl in one run has other losses or accuracies than epoch by epoch")

    def write(self, directory, order):
        """Writes the training images in an order, with the test images beside them."""
        shutil.rmtree(directory, ignore_errors=True)
        os.mkdir(directory)
        for kind, array in ("images", self.images[order]), ("labels", self.labels[order]):
            with open(f"{directory}/train-{kind}-idx{array.ndim}-ubyte", "wb") as f:
                f.write(bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes())
        for name in os.listdir(self.directory):
            if name.startswith("t10k-"):
                os.symlink(os.path.join(os.path.abspath(self.directory), name), os.path.join(directory, name))

    def execute(self, dtype, epochs, options):
        """The loss and the right images of every step, and the right test images after every epoch."""
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([self.program, "execute", "--model", "lenet5", "--epochs", str(epochs), "--dtype", dtype, "--batch", str(BATCH),
                            "--optimizer", "sgd", "--lr", str(RATE), "--momentum", "0", "--workers", "1", "--checkpoint", "never",
                            "--out", out, *options], check=True, stdout=subprocess.DEVNULL)
            steps, rows = (list(csv.DictReader(open(f"{out}/{name}.csv"))) for name in ("steps", "epochs"))
        return ([float(s["loss"]) for s in steps], [int(s["correct"]) for s in steps],
                [round(float(r["test_accuracy"]) * IMAGES) for r in rows])


def collect(args):
    """Writes how many of the 10,000 test images were classified right after each epoch of every training in float32."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["seed", "weights", "order", "program"] + [f"epoch{e + 1}" for e in range(EPOCHS)])
    done = [(seed, weights, order, program) for program in PROGRAMS
            for dtype, seed, weights, order in plan(program) if dtype == "float32"]
    for seed, *cell in sorted(done):
        run = np.load(f"{args.out}/float32.{seed}.{'.'.join(cell)}.npz")
        table.writerow([seed, *cell, *run["tested"]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in ("draw", draw), ("train", train), ("collect", collect):
        p = commands.add_parser(name, help=run.__doc__)
        p.add_argument("--out", required=True)
        p.set_defaults(run=run)
        if name == "train":
            p.add_argument("--program", choices=PROGRAMS, required=True)
            p.add_argument("--dahl", default="bin/dahl", help="the program dahl")
            p.add_argument("--data", required=True, help="directory of MNIST's files")
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
