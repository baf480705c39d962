#!/usr/bin/python3
"""Compares the accuracies and losses that seeds_train.py found: the tables and tests of README.md, as Markdown.

    seeds_report.py seeds.csv [OUT]

OUT is the directory of the trainings; without it losses are not compared. It needs numpy and scipy.
"""

import csv
import itertools
import os
import sys

import numpy as np
from scipy import stats

FACTORS = "weights", "order", "program"
LEVELS = "dahl", "torch"
FIRST_STEPS, EARLY_STEPS = 10, 100
CLOSE = 1e-5  # relative difference of a loss in float32


def read(path):
    """The accuracies in percent: of the crossed seeds an array by seed, weights, order, program and epoch, and of each
    other seed's own trainings an array by seed, program and epoch."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    epochs = [name for name in rows[0] if name.startswith("epoch")]
    runs = {(int(row["seed"]), *(row[f] for f in FACTORS)): [int(row[e]) / 100 for e in epochs] for row in rows}
    seeds = sorted({seed for seed, *_ in runs})
    crossed = [seed for seed in seeds if (seed, *LEVELS, LEVELS[0]) in runs]
    cells = itertools.product(crossed, LEVELS, LEVELS, LEVELS)
    fresh = itertools.product([seed for seed in seeds if seed not in crossed], LEVELS)
    return (np.array([runs[cell] for cell in cells]).reshape(len(crossed), 2, 2, 2, len(epochs)),
            np.array([runs[seed, own, own, own] for seed, own in fresh]).reshape(-1, 2, len(epochs)))


def walsh(d):
    """The averages of all pairs of differences, each with itself included (Walsh)."""
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def shift_of_pairs(d):
    """Hodges and Lehmann's estimate of the centre of paired differences, with the 95 % interval that belongs to
    Wilcoxon's signed-rank test by its normal approximation (Hollander, Wolfe, Nonparametric Statistical Methods, 3.3)."""
    a, n = walsh(d), len(d)
    deviation = np.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    return np.median(a), interval(a, deviation)


def shift_of_samples(x, y):
    """Hodges and Lehmann's estimate of the shift from y to x, with the 95 % interval that belongs to Mann and Whitney's
    test by its normal approximation (the same, 4.3)."""
    differences = np.sort(np.subtract.outer(x, y).ravel())
    deviation = np.sqrt(len(x) * len(y) * (len(x) + len(y) + 1) / 12)
    return np.median(differences), interval(differences, deviation)


def interval(ordered, deviation):
    """The values as far from both ends of the ordered ones as the test at 5 % allows."""
    k = int(len(ordered) / 2 - stats.norm.ppf(0.975) * deviation)
    return ordered[k - 1], ordered[-k]


def write_cells(final):
    print("| weights | order | program | least | 1st quartile | median | 3rd quartile | most | mean | deviation |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for cell in itertools.product(range(2), repeat=3):
        x = final[(slice(None), *cell)]
        numbers = [*np.percentile(x, [0, 25, 50, 75, 100]), x.mean(), x.std(ddof=1)]
        print("|", " | ".join([LEVELS[c] for c in cell] + [f"{n:.2f}" for n in numbers]), "|")
    print()


def write_users(name, ours, theirs):
    """Question 1, after every epoch; the last is the one that was asked about."""
    print(f"| {name}: epoch | median of dahl | median of PyTorch | shift | 95 % interval | Mann–Whitney p | Kolmogorov–Smirnov p |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for e, (x, y) in enumerate(zip(ours.T, theirs.T)):
        shift, (low, high) = shift_of_samples(x, y)
        rank = stats.mannwhitneyu(x, y, alternative="two-sided").pvalue
        distance = stats.ks_2samp(x, y, alternative="two-sided").pvalue
        print(f"| {e + 1} | {np.median(x):.2f} | {np.median(y):.2f} | {shift:+.2f} | {low:+.2f} to {high:+.2f} | {rank:.2f} | {distance:.2f} |")
    print()


def write_factors(final):
    """Question 2: the difference dahl's minus PyTorch's of each factor, averaged over the others."""
    print("| factor | seeds above, below, equal | shift | 95 % interval | Wilcoxon p |")
    print("|---|--:|--:|--:|--:|")
    for axis, factor in enumerate(FACTORS):
        means = final.mean(axis=tuple(a + 1 for a in range(3) if a != axis))
        d = np.round(means[:, 0] - means[:, 1], 6)  # sums of whole images, so equal means are equal
        shift, (low, high) = shift_of_pairs(d)
        print(f"| {factor} | {np.sum(d > 0)}, {np.sum(d < 0)}, {np.sum(d == 0)} | {shift:+.3f} | {low:+.3f} to {high:+.3f} | {stats.wilcoxon(d).pvalue:.2f} |")
    print()


def write_losses(directory):
    """Question 3, of the pairs of trainings with equal weights and orders: relative differences of losses."""
    print(f"| type | pairs | most of the first {FIRST_STEPS} steps | of the first {EARLY_STEPS}: median | most | pairs within {CLOSE:g} there | most of all "
          "| first step off by more than 1 %: median | pairs with equal counts throughout |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for dtype, runs in itertools.groupby(pairs(directory), key=lambda pair: pair[0]):
        runs = [pair[1:] for pair in runs]
        off = np.array([np.abs(a["losses"] - b["losses"]) / b["losses"] for a, b in runs])
        first, early = off[:, :FIRST_STEPS].max(), off[:, :EARLY_STEPS].max(axis=1)
        leaves = np.where((off > 0.01).any(axis=1), np.argmax(off > 0.01, axis=1) + 1, np.inf)
        equal = sum(all(np.array_equal(a[name], b[name]) for name in ("correct", "tested")) for a, b in runs)
        print(f"| {dtype} | {len(runs)} | {first:.1e} | {np.median(early):.1e} | {early.max():.1e} | {np.sum(early <= CLOSE)} | {off.max():.1e} "
              f"| {np.median(leaves):.0f} | {equal} |")


def pairs(directory):
    """The type and both programs' trainings wherever they are from equal weights in an equal order."""
    for name in sorted(os.listdir(directory)):
        twin = os.path.join(directory, name.replace(".dahl.npz", ".torch.npz"))
        if name.startswith("float") and name.endswith(".dahl.npz") and os.path.exists(twin):
            yield name.split(".")[0], np.load(os.path.join(directory, name)), np.load(twin)


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    crossed, fresh = read(sys.argv[1])
    final = crossed[..., -1]
    write_cells(final)
    write_users("crossed seeds", crossed[:, 0, 0, 0], crossed[:, 1, 1, 1])
    write_users("fresh seeds", fresh[:, 0], fresh[:, 1])
    write_factors(final)
    if len(sys.argv) == 3:
        write_losses(sys.argv[2])


if __name__ == "__main__":
    main()
