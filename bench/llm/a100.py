"""platforms/a100.toml, a node of eight A100: python3 bench/llm/a100.py [STEPS.csv] > platforms/a100.toml

With megatron_a100.csv it first finds PRODUCTS by the two steps of the model of 22 billion weights alone, so that the sum of the squares of their relative errors is least. The
two do not tell both shares apart: each has products and moved bytes as 1.8 to 1. So MOVING is a round guess. DAHL names the program.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCTS = 0.7023  # share of 312 TF/s that products reach, by the two steps
MOVING = 0.8  # share of their data sheet's bandwidth that memory and NVLink reach, a guess
PEAK, MEMORY, NVLINK = 312e12, 2039e9, 300e9
T, GPUS = 2048, 8
# Passes over all scores in two bytes each: a product writes or reads them once, a softmax reads and writes them, its gradient reads two and writes one, and a dropout has a mask of
# one byte besides. No product is counted twice: the gradients have two for each of dahl's two calls.
FORWARD, QUERIES, KEYS = 1 + 2 + 2.5 + 1, 1 + 2.5 + 3 + 1, 2
MODELS = {"gpt-22b": (64, 96, 4), "gpt-175b": (96, 128, 1), "gpt-530b": (128, 160, 1), "gpt-1t": (160, 160, 1)}  # heads, their width, samples

HEAD = """# A node of eight NVIDIA A100 SXM of 80 GB behind NVLink switches, with an adaptor of 25 GB/s for each. bench/llm/a100.py writes this file from data sheets and two shares. The first follows
# from two steps of a GPT of 22 billion weights (V. Korthikanti et al., MLSys 2023, table 5), the second is a guess. bench/llm.md says how well they predict other steps.
#
# Where the numbers come from
#   bfloat16    312 TF/s, of which products reach {products:.4f}. The steps were in float16, which has the same speed.
#   hbm, nvlink 2039 GB/s and 300 GB/s per direction, of which {moving:.4f} is reached
#   attention   products at the former speed, and passes over all scores, which the measured program kept, at the latter
#   adaptor     25 GB/s and 5 us, data sheet and a guess
#   power       400 W, data sheet; idle watts and those of the host are guesses
"""


def line(op, shape, seconds, flops, moved, kind="bfloat16"):
    return f'  {{ op = "{op}", variant = "", type = "{kind}", device = "cuda", shape = "{shape}", median = "{seconds * 1e6:.2f} us", p95 = "{seconds * 1e6:.2f} us", flops = "{flops:.0f} F", bytes = "{moved:.0f} B" }},'


def attention(products, moving):
    for heads, width, samples in MODELS.values():
        heads //= GPUS
        x, per_query = f"{samples}x{T}x{heads * width}", f"{samples}x{heads}x{T}"
        options = f" heads={heads} past={T - 1} window={2 * T - 1}"
        scores = samples * heads * T * T
        for op, shape, count, passes in (
            ("attention", f"{x};{per_query};{x};{x};{x}", 2, FORWARD),
            ("attention.dx", f"{x};{x};{x};{x};{x};{x};{x};{per_query};{per_query}", 4, QUERIES + KEYS),
            ("attention.dq", f"{x};{x};{x};{x};{x};{per_query};{per_query}", 2, QUERIES),
            ("attention.dkv", f"{x};{x};{x};{x};{x};{x};{per_query};{per_query}", 2, KEYS),
        ):
            flops, moved = 2 * count * width * scores, 2 * passes * scores
            yield line(op, shape + options, flops / (PEAK * products) + moved / (MEMORY * moving), flops, moved)


def exchanges(moving):
    for name, scale in (("all_gather", 1), ("reduce_scatter", 1), ("all_reduce", 2)):
        for kind in ("bfloat16", "float32"):
            for whole in (2**20, 2**26, 2**32):
                steps = scale * (GPUS - 1)
                sent = whole * steps // GPUS
                yield line(name, f"{whole} bytes on {GPUS}", sent / (NVLINK * moving), steps, sent, kind)


def platform(products, moving):
    out = [HEAD.format(products=products, moving=moving) + 'name = "a100"\nhost_power = { watts = "1000 W", source = "guess" }\nmodel = [', *attention(products, moving), *exchanges(moving), "]"]
    out.append('\n[[memory]]\nname = "ram"\ncapacity = "2 TB"\nbandwidth = "300 GB/s"\n\n[[device]]\nname = "cpu"\nkind = "cpu"\nmemory = "ram"\nspeed = { float32 = "60 GF/s", float64 = "30 GF/s" }\n'
               'power = { idle = "100 W", busy = "200 W", source = "guess" }')
    for i in range(GPUS):
        out.append(f'\n[[memory]]\nname = "hbm{i}"\ncapacity = "80 GiB"\nbandwidth = "{MEMORY * moving / 1e9:.0f} GB/s"')
    for i in range(GPUS):
        out.append(f'\n[[device]]\nname = "gpu{i}"\nkind = "cuda"\nmemory = "hbm{i}"\nspeed = {{ bfloat16 = "{PEAK * products / 1e12:.2f} TF/s", float32 = "19.5 TF/s", float64 = "9.7 TF/s" }}\n'
                   'cache = { l2 = "40 MB" }\ncopy_engines = { in = 1, out = 1 }\npower = { idle = "60 W", busy = "400 W", source = "guess" }')
    for i in range(GPUS):
        out.append(f'\n[[link]]\nname = "pcie{i}"\nbandwidth = "25 GB/s"\nlatency = "8 us"\nsharing = "duplex"\n\n[[link]]\nname = "nvlink{i}"\nbandwidth = "{NVLINK * moving / 1e9:.0f} GB/s"\nlatency = "1 us"\nsharing = "duplex"')
    for i in range(GPUS):
        out.append(f'\n[[route]]\nfrom = "ram"\nto = "hbm{i}"\nlinks = ["pcie{i}"]')
        out += [f'\n[[route]]\nfrom = "hbm{i}"\nto = "hbm{j}"\nlinks = ["nvlink{i}", "nvlink{j}"]' for j in range(i + 1, GPUS)]
    return "\n".join(out) + "\n"


def simulated(folder, text, recompute):
    """Seconds of a step of the model of 22 billion weights."""
    path = os.path.join(folder, "a100.toml")
    with open(path, "w") as f:
        f.write(text)
    lowering, word = {"attention": ("recompute-attention.toml", ""), "full": ("recompute-layer.toml", ":whole")}[recompute]
    out = subprocess.run([DAHL, "simulate", "--platform", path, "--dtype", "bfloat16", "--model", os.path.join(HERE, "gpt-22b.toml"), "--batch", "4", "--lowering", os.path.join(HERE, lowering),
                          "--policy", "megatron:8x1x1x1x1" + word, "--steps", "2", "--out", os.path.join(folder, "run"), "--json"], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout)["step_s"]


def calibrated(path):
    """The share of products with which both steps of 22 billion weights take as long as measured, in the mean. Times are lines in its inverse."""
    goals = {row["recompute"]: float(row["step_s"]) for row in csv.DictReader(open(path)) if row["model"] == "22B"}
    up = down = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name, goal in goals.items():
            first, second = (simulated(folder, platform(share, MOVING), name) / goal for share in (0.5, 1.0))
            slope, rest = first - second, 2 * second - first
            up, down = up + slope * (1 - rest), down + slope * slope
    return down / up


def main():
    print(platform(calibrated(sys.argv[1]) if len(sys.argv) > 1 else PRODUCTS, MOVING), end="")


if __name__ == "__main__":
    main()
