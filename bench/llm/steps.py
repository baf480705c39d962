"""The table of bench/llm.md: python3 bench/llm/steps.py FOLDER [MODEL...]

FOLDER has b200_llama3_70b.csv and megatron_a100.csv. With models, only rows of these. DAHL names the program.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
HERE = os.path.dirname(os.path.abspath(__file__))
GIB = 1024**3
LOWERINGS = {"full": "recompute-layer.toml", "attention": "recompute-attention.toml"}


def b200(row):
    t, p, d, m = (int(row[key]) for key in ("tensor", "pipeline", "data", "micro_batches"))
    return "llama3-70b", f"{t} × {p} × {d}, {m}", float(row["step_ms"]) / 1e3, float(row["peak_allocated_gib_rank0"]), [
        "--platform", "b200", "--model", os.path.join(HERE, "llama3-70b.toml"), "--batch", str(m * d), "--policy", f"megatron:{t}x{d}x{p}x1x{m}"]


def a100(row):
    t, p, v, batch, each = (int(row[key]) for key in ("tensor", "pipeline", "interleaved_chunks", "batch", "micro_batch"))
    name, whole = row["model"].lower(), "" if row["sequence_parallel"] == "yes" else ":whole"
    platform = ["--platform", "a100"] if p == 1 else ["--platform", "superpod", "--devices", f"n0..n{p - 1}"]
    return "gpt-" + name, f"{t} × {p} × 1, {batch // each}, {row['recompute']}", float(row["step_s"]), None, platform + [
        "--model", os.path.join(HERE, f"gpt-{name}.toml"), "--batch", row["batch"], "--lowering", os.path.join(HERE, LOWERINGS[row["recompute"]]),
        "--policy", f"megatron:{t}x1x{p}x{v}x{batch // each}{whole}"]


def main():
    folder, only = sys.argv[1], sys.argv[2:]
    print("| model | tensor × pipeline × data, micro-batches | measured | simulated | error | memory of the first device, measured | simulated | error | joules |\n|" + " --- |" * 9)
    for file, of in (("b200_llama3_70b.csv", b200), ("megatron_a100.csv", a100)):
        for row in csv.DictReader(open(os.path.join(folder, file))):
            name, layout, seconds, gib, options = of(row)
            if only and name not in only:
                continue
            with tempfile.TemporaryDirectory() as at:
                command = [DAHL, "simulate", *options, "--dtype", "bfloat16", "--steps", "2", "--out", os.path.join(at, "run"), "--json"]
                found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            peak = max(found["peak_bytes"][name] for name in found["peak_bytes"] if name.endswith("hbm0") and name.split(".")[0] in ("n0", "hbm0")) / GIB
            memory = f"{gib:.2f} GiB | {peak:.2f} GiB | {100 * (peak / gib - 1):+.1f} %" if gib else f" | {peak:.2f} GiB | "
            joules = found["counted"]["modelled_joules"] / found["counted"]["steps"]
            print(f"| {name} | {layout} | {seconds:.4g} s | {found['step_s']:.4g} s | {100 * (found['step_s'] / seconds - 1):+.1f} % | {memory} | {joules:.0f} |", flush=True)


main()
