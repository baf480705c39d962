"""Trained networks in dahl, onnxruntime and PyTorch: python3 bench/inference/compare.py [--mnist DIR] [--platform FILE] > table.md

Each network is trained by dahl and written with --save net.onnx. Then dahl evaluate and onnxruntime predict the same test set: the outputs are
to agree within TOLERANCE times the largest one, and the predicted classes unless two outputs are as near as that. The exit code is 1 where
they do not. Last, all programs predict in turn, ROUNDS times over, with as many threads as there are cores: the table has medians of images per
second of each way to run them. What counts as the best of a program is its fastest way. With a platform file of this machine, by dahl
calibrate, one way is a plan by dahl plan --inference. Times are of whole batches. dahl's have the conversion of bytes into numbers and the
loss, and the others' have neither.

It needs numpy, onnx, onnxruntime, and for the times torch; without --mnist (IDX files as MNIST names them) all images are made up.
"""
import argparse
import csv
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import onnx
import onnxruntime

TOLERANCE = 2e-5
THREADS = len(os.sched_getaffinity(0))
NETWORKS = {"lenet5": ("lenet5", "mnist"), "resnet18": ("resnet18", "colour"), "depthwise": ("nn/examples/depthwise.toml", "mnist"),
            "gpt-tiny": ("gpt-tiny", "tokens")}
TRAINED = {"mnist": ["--epochs", "3", "--optimizer", "adamw", "--lr", "0.002"], "colour": ["--limit", "512", "--epochs", "2", "--batch", "32", "--optimizer", "adamw", "--lr", "0.001"],
           "tokens": ["--epochs", "2"]}


def dahl(program, *arguments):
    done = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dahl {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def made_up(path, shape, classes=10, samples=(2000, 1024)):
    """An archive of images, each the mean of its class's pattern and noise."""
    random = numpy.random.default_rng(34)
    patterns = random.integers(0, 256, (classes, *shape))
    arrays = {}
    for split, n in zip(("train", "test"), samples):
        labels = random.integers(0, classes, n)
        arrays[f"x_{split}"] = ((patterns[labels] + random.integers(0, 256, (n, *shape))) // 2).astype(numpy.uint8)
        arrays[f"y_{split}"] = labels.astype(numpy.int32)
    numpy.savez(path, **arrays)


def made_up_tokens(path, tokens=256, positions=64, samples=(600, 64)):
    """An archive of sequences in which each token has a successor, which follows it seven times of eight."""
    random = numpy.random.default_rng(35)
    successor, arrays = random.permutation(tokens), {}
    for split, n in zip(("train", "test"), samples):
        x = random.integers(0, tokens, (n, positions + 1), dtype=numpy.int32)
        for t in range(positions):
            x[:, t + 1] = numpy.where(random.integers(0, 8, n) == 0, x[:, t + 1], successor[x[:, t]])
        arrays[f"x_{split}"], arrays[f"y_{split}"] = x[:, :-1], x[:, 1:]
    numpy.savez(path, **arrays)


def test_images(data):
    """The test set as a network reads it: tokens, or pixels divided by 255."""
    if data.endswith(".npz"):
        pixels = numpy.load(data)["x_test"]
        if pixels.dtype == numpy.int32:
            return pixels.astype(numpy.int64)
    else:
        name = os.path.join(data, "t10k-images-idx3-ubyte")
        with (open(name, "rb") if os.path.exists(name) else gzip.open(name + ".gz")) as file:
            pixels = numpy.frombuffer(file.read()[16:], numpy.uint8).reshape(-1, 1, 28, 28)
    return pixels.astype(numpy.float32) / numpy.float32(255)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def compared(args, name, path, data, images, directory):
    """A row of the table of agreement, and whether outputs agree."""
    out, outputs = os.path.join(directory, "said"), os.path.join(directory, "said.npz")
    dahl(args.dahl, "evaluate", path, "--data", data, "--batch", "64", "--outputs", outputs, "--out", out)
    ours, theirs = numpy.load(outputs)["outputs"], session(path).run(None, {"input": images})[0]
    ours, theirs = ours.reshape(-1, ours.shape[-1]), theirs.reshape(-1, theirs.shape[-1])  # positions of sequences as rows
    with open(os.path.join(out, "predictions.csv")) as file:
        labels, predicted = numpy.array([(int(row["label"]), int(row["predicted"])) for row in csv.DictReader(file)]).T
    bound = TOLERANCE * max(1, numpy.abs(theirs).max())
    ranked = numpy.sort(theirs, axis=1)
    tied = ranked[:, -1] - ranked[:, -2] <= 2 * bound
    differ = predicted != theirs.argmax(axis=1)
    error = numpy.abs(ours - theirs).max()
    agree = error <= bound and not (differ & ~tied).any()
    print(f"| {name} | {len(images)} | {100 * (labels == predicted).mean():.2f} % | {error:.2g} | {numpy.abs(theirs).max():.3g} | {differ.sum()} | {tied.sum()} | {'yes' if agree else 'NO'} |", flush=True)
    return agree


def network_of(path):
    """A PyTorch module that computes an ONNX file of dahl."""
    import torch
    from torch import nn
    from torch.nn import functional as f

    graph = onnx.load(path).graph
    weights = {t.name: torch.from_numpy(onnx.numpy_helper.to_array(t).copy()) for t in graph.initializer}

    def padded(x, top, left, bottom, right, value=0.0):
        return x if top == left == bottom == right == 0 else f.pad(x, (left, right, top, bottom), value=value)

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.wires = nn.ModuleList(), []
            for node in graph.node:
                a = {x.name: onnx.helper.get_attribute_value(x) for x in node.attribute}
                self.layers.append(self.layer(node, a))
                self.wires.append(([i for i in node.input if i not in weights], node.output[0], node.op_type, a))

        def layer(self, node, a):
            w = [weights[i] for i in node.input if i in weights]
            if node.op_type == "Conv":
                m = nn.Conv2d(w[0].shape[1] * a["group"], w[0].shape[0], a["kernel_shape"], a["strides"], 0, a["dilations"], a["group"], len(w) > 1)
            elif node.op_type == "Gemm":
                m = nn.Linear(w[0].shape[1], w[0].shape[0], len(w) > 1)
            elif node.op_type == "BatchNormalization":
                m = nn.BatchNorm2d(len(w[0]), a["epsilon"])
                m.running_mean.copy_(w[2])
                m.running_var.copy_(w[3])
            else:
                return nn.Identity()
            m.weight.data.copy_(w[0])
            if len(w) > 1:
                m.bias.data.copy_(w[1])
            return m

        def forward(self, x):
            known = {"input": x}
            for (inputs, output, op, a), layer in zip(self.wires, self.layers):
                x = known[inputs[0]]
                if op == "Conv":
                    t, l, b, r = a["pads"]
                    if t == b and l == r:
                        x = f.conv2d(x, layer.weight, layer.bias, layer.stride, (t, l), layer.dilation, layer.groups)
                    else:
                        x = layer(padded(x, t, l, b, r))
                elif op == "MaxPool":
                    x = f.max_pool2d(padded(x, *a["pads"], value=float("-inf")), a["kernel_shape"], a["strides"])
                elif op == "AveragePool":
                    x = f.avg_pool2d(padded(x, *a["pads"]), a["kernel_shape"], a["strides"])
                elif op == "GlobalAveragePool":
                    x = f.adaptive_avg_pool2d(x, 1)
                elif op in ("Add", "Sum"):
                    for other in inputs[1:]:
                        x = x + known[other]
                elif op == "Concat":
                    x = torch.cat([known[i] for i in inputs], 1)
                elif op == "Relu":
                    x = f.relu(x)
                elif op == "Flatten":
                    x = torch.flatten(x, 1)
                elif op in ("Gemm", "BatchNormalization", "Dropout"):
                    x = layer(x)
                else:
                    raise ValueError(f"this script has no {op}")
                known[output] = x
            return x

    return Network().eval()


def ways_of_torch(path, images, batch):
    """The ways to run a network in PyTorch, by name: a module and its input's memory format."""
    import torch

    warnings.simplefilter("ignore", FutureWarning)  # of torch.jit
    torch.set_num_threads(THREADS)
    example = torch.from_numpy(images[:batch])
    with torch.inference_mode():
        expected = session(path).run(None, {"input": images[:batch]})[0]
        for name, make, form in [
            ("eager", lambda: network_of(path), torch.contiguous_format),
            ("eager, channels_last", lambda: network_of(path).to(memory_format=torch.channels_last), torch.channels_last),
            ("frozen", lambda: torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(network_of(path), example))), torch.contiguous_format),
            ("compiled", lambda: torch.compile(network_of(path)), torch.contiguous_format),
            ("compiled, channels_last", lambda: torch.compile(network_of(path).to(memory_format=torch.channels_last)), torch.channels_last),
        ]:
            try:
                network = make()
                said = network(example.to(memory_format=form)).numpy()
            except Exception as problem:  # such as torch.compile without a compiler
                print(f"PyTorch, {name}: {str(problem).splitlines()[0]}", file=sys.stderr)
                continue
            if numpy.abs(said - expected).max() > 1e-3 * max(1, numpy.abs(expected).max()):
                sys.exit(f"PyTorch, {name}: another network, {numpy.abs(said - expected).max()} apart")
            yield name, network, form


def per_second(run, batches, batch, least):
    """Images per second of passes over batches for a time, after one batch that warms up."""
    run(batches[0])
    done, begin = 0, time.perf_counter()
    while (spent := time.perf_counter() - begin) < least:
        for x in batches:
            run(x)
        done += len(batches) * batch
    return done / spent


def timed(args, name, path, data, images, batch, directory):
    """Rows of the table of times."""
    import torch

    parts = [images[i:i + batch] for i in range(0, len(images) - batch + 1, batch)]
    common = ["evaluate", path, "--data", data, "--batch", str(batch), "--out", os.path.join(directory, "timed")]
    if args.platform:
        common += ["--platform", args.platform]
    ways = {("dahl", "default tiles"): lambda: dahl(args.dahl, *common)["images_per_s"]}
    if args.platform:
        plan = os.path.join(directory, f"plan{batch}")
        dahl(args.dahl, "plan", "--inference", "--platform", args.platform, "--model", path, "--data", data, "--batch", str(batch), "--objective", "time", "--budget", args.budget, "--out", plan)
        ways["dahl", "planned"] = lambda: dahl(args.dahl, *common, "--plan", os.path.join(plan, "plan.json"))["images_per_s"]
    run = session(path)
    ways["onnxruntime", "all optimisations"] = lambda: per_second(lambda x: run.run(None, {"input": x}), parts, batch, args.seconds)
    for way, network, form in ways_of_torch(path, images, batch):
        tensors = [torch.from_numpy(x).to(memory_format=form) for x in parts]

        def torch_run(network=network, tensors=tensors):
            with torch.inference_mode():
                return per_second(network, tensors, batch, args.seconds)
        ways["PyTorch", way] = torch_run
    rates = {way: [] for way in ways}
    for _ in range(args.rounds):
        for way, measure in ways.items():
            rates[way].append(measure())
            time.sleep(0.2)  # until threads of the one before have stopped spinning
    median = {way: statistics.median(all) for way, all in rates.items()}
    best = {program: max(v for (p, _), v in median.items() if p == program) for program, _ in ways}
    for (program, way), rate in median.items():
        low, high = min(rates[program, way]), max(rates[program, way])
        mark = "**" if rate == best[program] else ""
        print(f"| {name} | {batch} | {program}, {way} | {mark}{rate:,.0f}{mark} | {low:,.0f} to {high:,.0f} | {best['dahl'] / rate:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("--mnist", help="directory of IDX files")
    parser.add_argument("--platform", help="machine of dahl calibrate, for which dahl also plans")
    parser.add_argument("--budget", default="20000 nodes", help="of the plans")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--rounds", type=int, default=7, help="0: outputs are compared, and no times")
    parser.add_argument("--seconds", type=float, default=1, help="of a measurement")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        data = {"mnist": args.mnist or os.path.join(directory, "grey.npz"), "colour": os.path.join(directory, "colour.npz")}
        made_up(data["colour"], (3, 32, 32))
        data["tokens"] = os.path.join(directory, "tokens.npz")
        made_up_tokens(data["tokens"])
        if not args.mnist:
            made_up(data["mnist"], (1, 28, 28))
        version = subprocess.run([args.dahl, "--version"], capture_output=True, text=True).stdout.strip()
        print(f"{version}; onnxruntime {onnxruntime.__version__}; {platform.machine()}, {THREADS} threads; load {os.getloadavg()[0]:.1f}\n")
        print("| network | images | accuracy | largest difference | largest output | other classes | near ties | agree |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
        networks, agree = {}, True
        for name in args.networks.split(","):
            model, of = NETWORKS[name]
            home = os.path.join(directory, name)
            os.mkdir(home)
            path = os.path.join(home, f"{name}.onnx")
            dahl(args.dahl, "execute", "--model", model, "--data", data[of], *TRAINED[of], "--save", path, "--out", os.path.join(home, "trained"))
            networks[name] = (path, data[of], test_images(data[of]), home)
            agree = compared(args, name, path, data[of], networks[name][2], home) and agree
        if args.rounds > 0:
            print("\n| network | batch | program | images/s | least to most | dahl's best over it |\n| --- | --- | --- | --- | --- | --- |")
            for name, (path, of, images, home) in networks.items():
                for batch in args.batches.split(","):
                    timed(args, name, path, of, images, int(batch), home)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
