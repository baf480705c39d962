"""Plans of dahl, executed beside each other: python3 bench/executed_plans.py PLATFORM MODEL[=LOWERING]... > table.md

For each network, for time and for energy, dahl plans for several sets of devices. The plans then run in turn, REPEATS
times over, and the table has the median of what dahl compare says of each. Below it stands how many pairs of sets that
are predicted 10 % apart or more came out in the predicted order. With a lowering file HEFT plans for time on all devices of each
set, by the variant VARIANT, and the weights after all runs have to be equal. DAHL names the program.
"""
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
SETS = ["cpu:1", "cpu", "gpu", "cpu:1,gpu"]
REPEATS, IMAGES, BATCH, BUDGET = int(os.environ.get("REPEATS", "7")), int(os.environ.get("IMAGES", "6400")), 64, "5s"
VARIANT = os.environ.get("VARIANT", "avx2")
UNITS = {"time": ("ms", 1e3), "energy": ("mJ", 1e3)}


def run(command, *arguments):
    done = subprocess.run([DAHL, command, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"dahl {command} {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def executed(plan, common, directory):
    """Time of a step in the mean of the run, joules of the recorded ones, and weights."""
    ran = run("execute", *common, "--plan", f"{plan}/plan.json", "--epochs", "1", "--out", directory)
    compared = run("compare", directory)
    return {"time": ran["step_s"], "energy": compared["joules_per_step"]["measured"], "weights": ran["training"]["weights_sha256"]}


def rows(platform, argument, directory):
    model, _, lowering = argument.partition("=")
    common = ["--platform", platform, "--model", model, "--batch", str(BATCH), "--limit", str(IMAGES)] + ["--variant", VARIANT] * bool(lowering)
    ways = {objective: ["--objective", objective, "--budget", BUDGET] for objective in UNITS}
    if lowering:
        ways = {"time": ["--policy", "heft", "--lowering", lowering]}
    plans, runs, weights = {}, {}, set()
    for objective, devices in itertools.product(ways, SETS):
        out = f"{directory}/{model}-{objective}-{devices}"
        p = run("plan", *common, *ways[objective], "--devices", devices, "--out", out)
        plans[objective, devices] = out, p["steady_step_j"] if objective == "energy" else p.get("steady_step_s", p["step_s"])
        runs[objective, devices] = []
    for _ in range(REPEATS):
        for key, (plan, _) in plans.items():
            done = executed(plan, common, f"{directory}/run")
            runs[key].append(done[key[0]])
            weights.add(done["weights"])
    if lowering and len(weights) > 1:
        sys.exit(f"{model}: the weights differ: {weights}")
    for objective in ways:
        (unit, scale), seen = UNITS[objective], []
        for devices in SETS:
            predicted, all = plans[objective, devices][1], runs[objective, devices]
            median = statistics.median(all)
            seen.append((devices, predicted, median))
            print(f"| {model} | {objective}, {unit} | {devices} | {scale * predicted:.4g} | {scale * median:.4g} | "
                  f"{scale * min(all):.4g} to {scale * max(all):.4g} | {100 * (predicted / median - 1):+.0f} % |", flush=True)
        yield objective, seen


def main():
    platform, right, pairs = sys.argv[1], {}, {}
    print("| network | objective | devices | predicted | executed | least to most | error |\n| --- | --- | --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as directory:
        for model in sys.argv[2:]:
            for objective, seen in rows(platform, model, directory):
                for a, b in itertools.combinations(seen, 2):
                    if max(a[1], b[1]) >= 1.1 * min(a[1], b[1]):
                        key = objective, "with both" if "," in a[0] + b[0] else "cores or GPU"
                        pairs[key] = pairs.get(key, 0) + 1
                        right[key] = right.get(key, 0) + ((a[1] < b[1]) == (a[2] < b[2]))
    for key, n in pairs.items():
        print(f"\n{', '.join(key)}: {right[key]} of {n} pairs as predicted")


main()
