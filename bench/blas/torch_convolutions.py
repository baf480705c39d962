#!/usr/bin/env python3
"""Convolutions of dahl beside oneDNN in a wheel of PyTorch, on one thread at batch 64.

    go test -c -o /tmp/kernels.test ./kernels
    python3 bench/blas/torch_convolutions.py /tmp/kernels.test [--pattern 'stride2'] [--level avx512]

The shapes are those of BenchmarkConvolutions. Both take turns, shape by shape and pass by pass; a figure is the
median of the rounds, each the median of its calls, in processor time. Maps and filters of both have their channels last;
PyTorch reorders filters for oneDNN in each call, as in training. Taps outside the image do not count as work.
"""

import argparse
import os
import re
import statistics
import subprocess
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402, which reads the variable

PASSES = {"conv2d.nhwc": "forward", "conv2d.nhwc.dx": "input gradient", "conv2d.nhwc.dw": "weight gradient"}
BATCH = 64


class Shape:
    """A convolution by its name in BenchmarkConvolutions."""

    def __init__(self, name):
        numbers = re.fullmatch(r"(\d+)→(\d+)_(\d+)×\d+@(\d+)_stride(\d+)_pad(\d+)", name)
        self.name = name
        self.channels, self.filters, self.window, self.height, self.stride, self.pad = map(int, numbers.groups())
        self.out = (self.height + 2 * self.pad - self.window) // self.stride + 1

    def flops(self):
        taps = sum(0 <= u * self.stride + i - self.pad < self.height for u in range(self.out) for i in range(self.window))
        return 2 * BATCH * self.channels * self.filters * taps * taps

    def call(self, op):
        """The pass in PyTorch."""
        def random(*extents):
            return torch.rand(*extents).sub_(0.5).to(memory_format=torch.channels_last)
        x, y = random(BATCH, self.channels, self.height, self.height), random(BATCH, self.filters, self.out, self.out)
        w = random(self.filters, self.channels, self.window, self.window)
        if op == "conv2d.nhwc":
            return lambda: torch.nn.functional.conv2d(x, w, None, self.stride, self.pad)
        wanted = [op == "conv2d.nhwc.dx", op == "conv2d.nhwc.dw", False]
        two = [self.stride] * 2, [self.pad] * 2, [1, 1]
        return lambda: torch.ops.aten.convolution_backward(y, x, w, None, *two, False, [0, 0], 1, wanted)


def theirs(call, seconds):
    """The median of the processor times of calls of so many seconds together, in seconds."""
    call()
    times, end = [], time.thread_time() + seconds
    while time.thread_time() < end or len(times) < 3:
        start = time.thread_time_ns()
        call()
        times.append((time.thread_time_ns() - start) / 1e9)
    return statistics.median(times)


def bench(program, pattern, seconds):
    """The benchmarks that run, each with its GFLOP/s and share of the peak."""
    out = subprocess.run([program, "-test.run", "^$", "-test.bench", pattern, "-test.benchtime", seconds],
                         check=True, capture_output=True, text=True).stdout
    line = r"BenchmarkConvolutions/(\S+)/(\S+)/(\w+?)(?:-\d+)?\s+\d+\s+([\d.e+]+) %peak\s+([\d.e+]+) GFLOP/s"
    return [(m[1], m[2], float(m[5]), float(m[4])) for m in re.finditer(line, out)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("program", help="the compiled tests of package kernels")
    arguments.add_argument("--pattern", default=".", help="of the names of shapes")
    arguments.add_argument("--level", default="avx512", choices=["avx512", "avx2"])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=0.15, help="of each round of each")
    options = arguments.parse_args()
    if options.level == "avx2":
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(f"PyTorch {torch.__version__}, {options.level}, {options.rounds} rounds.\n")
    print("| convolution | pass | oneDNN | dahl | share of the peak | dahl / oneDNN |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    found = bench(options.program, f"^BenchmarkConvolutions$/({options.pattern})/./^{options.level}$", "1x")
    for name, op, _, _ in found:
        shape = Shape(name)
        call, own, other = shape.call(op), [], []
        for _ in range(options.rounds):
            other.append(shape.flops() / theirs(call, options.seconds) / 1e9)
            only = f"^BenchmarkConvolutions$/^{name}$/^{re.escape(op)}$/^{options.level}$"
            own += bench(options.program, only, f"{options.seconds}s")
        ours, peak = statistics.median(o[2] for o in own), statistics.median(o[3] for o in own)
        reference = statistics.median(other)
        print(f"| {name.replace('_', ' ')} | {PASSES[op]} | {reference:.0f} | {ours:.0f} | {peak:.0f} % | {ours / reference:.2f} |", flush=True)


if __name__ == "__main__":
    main()
