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
EARLY_STEPS = 100
CLOSE = 1e-5  # relative difference of a loss in float32


def read(path):
    """The accuracies in percent: an array by seed, weights, order, program and epoch."""
    with open(path) as f:
        rows = list(csv.DictReader(f))
    seeds = sorted({int(row["seed"]) for row in rows})
    epochs = sum(name.startswith("epoch") for name in rows[0])
    accuracies = np.full((len(seeds), 2, 2, 2, epochs), np.nan)
    for row in rows:
        cell = [LEVELS.index(row[f]) for f in FACTORS]
        accuracies[(seeds.index(int(row["seed"])), *cell)] = [int(row[f"epoch{e + 1}"]) / 100 for e in range(epochs)]
    if np.isnan(accuracies).any():
        raise SystemExit(f"{path}: a training is missing")
    return accuracies


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


def write_users(accuracies):
    """Question 1, after every epoch; the last is the one that was asked about."""
    print("| epoch | median of dahl | median of PyTorch | shift | 95 % interval | Mann–Whitney p | Kolmogorov–Smirnov p |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for e in range(accuracies.shape[-1]):
        ours, theirs = accuracies[:, 0, 0, 0, e], accuracies[:, 1, 1, 1, e]
        shift, (low, high) = shift_of_samples(ours, theirs)
        rank = stats.mannwhitneyu(ours, theirs, alternative="two-sided").pvalue
        distance = stats.ks_2samp(ours, theirs, alternative="two-sided").pvalue
        print(f"| {e + 1} | {np.median(ours):.2f} | {np.median(theirs):.2f} | {shift:+.2f} | {low:+.2f} to {high:+.2f} | {rank:.2f} | {distance:.2f} |")


def write_factors(final):
    """Question 2: the difference dahl's minus PyTorch's of each factor, averaged over the others."""
    print("| factor | seeds above, below, equal | shift | 95 % interval | Wilcoxon p |")
    print("|---|--:|--:|--:|--:|")
    for axis, factor in enumerate(FACTORS):
        means = final.mean(axis=tuple(a + 1 for a in range(3) if a != axis))
        d = np.round(means[:, 0] - means[:, 1], 6)  # sums of whole images, so equal means are equal
        shift, (low, high) = shift_of_pairs(d)
        print(f"| {factor} | {np.sum(d > 0)}, {np.sum(d < 0)}, {np.sum(d == 0)} | {shift:+.3f} | {low:+.3f} to {high:+.3f} | {stats.wilcoxon(d).pvalue:.2f} |")


def write_losses(directory):
    """Question 3, of the pairs of trainings with equal weights and orders."""
    print("| type | pairs | largest difference of the first 100 losses: median | most | pairs within 1e-5 | largest of all losses "
          "| first step off by more than 1 %: median | pairs with equal counts throughout |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for dtype in "float32", "float64":
        early, whole, leaves, equal = [], [], [], 0
        for name in sorted(os.listdir(directory)):
            if not (name.startswith(dtype + ".") and name.endswith(".dahl.npz")):
                continue
            a, b = (np.load(os.path.join(directory, name.replace(".dahl.npz", end))) for end in (".dahl.npz", ".torch.npz"))
            off = np.abs(a["losses"] - b["losses"]) / b["losses"]
            early.append(off[:EARLY_STEPS].max())
            whole.append(off.max())
            leaves.append(np.argmax(off > 0.01) + 1 if (off > 0.01).any() else np.inf)
            equal += np.array_equal(a["correct"], b["correct"]) and np.array_equal(a["tested"], b["tested"])
        print(f"| {dtype} | {len(early)} | {np.median(early):.1e} | {max(early):.1e} | {np.sum(np.array(early) <= CLOSE)} | {max(whole):.1e} "
              f"| {np.median(leaves):.0f} | {equal} |")


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    accuracies = read(sys.argv[1])
    final = accuracies[..., -1]
    for write, value in (write_cells, final), (write_users, accuracies), (write_factors, final):
        write(value)
        print()
    if len(sys.argv) == 3:
        write_losses(sys.argv[2])


if __name__ == "__main__":
    main()
