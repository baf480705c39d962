"""platforms/b200.toml from the measurements in SimuMax's configs/system/b200_bf16_ceperm.json: python3 bench/b200/platform.py FILE.json > platforms/b200.toml

DAHL names the program. It writes the graphs whose bandwidth-bound calls get models: one layer of Llama 3 of 70 billion weights, whole and in tiles, Llama
of 8 billion, and GPT-2.
"""
import json
import os
import subprocess
import sys
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
GPUS = 8
GIB = 1024**3
HEAD = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "machine.toml")).read()
LLAMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llama-70b-layer.toml")


def line(op, shape, seconds, flops, moved, kind="bfloat16"):
    return f'  {{ op = "{op}", variant = "", type = "{kind}", device = "cuda", shape = "{shape}", median = "{seconds * 1e6:.2f} us", p95 = "{seconds * 1e6:.2f} us", flops = "{flops:.0f} F", bytes = "{moved:.0f} B" }},'


def products(op):
    """Products by layout: TN is the forward pass, NN the gradient of the input, NT that of the weight, added to a float32 sum."""
    found = {}
    for name, efficiency in op["accurate_efficient_factor"].items():
        f = dict(part.split("=") for part in name.split(", "))
        m, k, n, layout = int(f["m"]), int(f["k"]), int(f["n"]), f["layout"]
        if layout == "NT" and f["out_dtype"] != "fp32":
            continue
        call, shape = {
            "TN": ("dense", f"{m}x{n};{m}x{k};{n}x{k}"),
            "NN": ("dense.dx", f"{m}x{n};{m}x{k};{k}x{n}"),
            "NT": ("dense.dw", f"{m}x{n};{k}x{m};{k}x{n}"),
        }[layout]
        flops = 2 * m * n * k
        found.setdefault((call, shape), line(call, shape, flops / (op["tflops"] * 1e12 * efficiency), flops, 2 * (m * k + k * n + m * n)))
    return found.values()


def attention(ops, moving):
    """The data count all T×T scores, also those that a causal attention does not make: two products forward and five backward. dahl has one call for
    the backward pass, and one before it that moves bytes. Where positions are cut it has two calls of three and of four products, which share the measured time so."""
    for name, forward in ops["sdp_fwd"]["accurate_efficient_factor"].items():
        backward = ops["sdp_bwd"]["accurate_efficient_factor"].get(name)
        f = dict(part.split("=") for part in name.split(", "))
        t, heads, keys, d = int(f["seq_len"]), int(f["head_num"]), int(f["kv_head_num"]), int(f["qk_head_dim"])
        if f["qkv_contiguous"] == "True" or d != int(f["v_head_dim"]) or backward is None:
            continue
        q, k, l = f"1x{t}x{heads * d}", f"1x{t}x{keys * d}", f"1x{heads}x{t}"
        groups = ("" if heads == keys else f" group={heads // keys}") + ("" if keys == 1 else f" heads={keys}")
        options = groups + f" past={t - 1} window={t}"
        product = 2 * heads * d * t * t  # of all scores
        bytes_q, bytes_k = 2 * t * heads * d, 2 * t * keys * d
        peak = ops["sdp_fwd"]["tflops"] * 1e12
        rows = 2 * bytes_q + 4 * heads * t
        along = moved_seconds(moving, rows)
        back = 5 * product / (peak * backward) - along
        yield line("attention", f"{q};{l};{q};{k};{k}{options}", 2 * product / (peak * forward), product, 2 * bytes_q + 2 * bytes_k)
        yield line("attention.along", f"{l};{q};{q}{groups}", along, 2 * t * heads * d, rows)
        yield line("attention.dx", f"{q};{k};{k};{q};{q};{k};{k};{l};{l}{options}", back, product * 5 / 2, 3 * bytes_q + 4 * bytes_k)
        yield line("attention.dq", f"{q};{q};{q};{k};{k};{l};{l}{options}", back * 3 / 7, product * 3 / 2, 3 * bytes_q + 2 * bytes_k)
        yield line("attention.dkv", f"{k};{k};{q};{q};{k};{k};{l};{l}{options}", back * 4 / 7, product * 2, 2 * bytes_q + 4 * bytes_k)


def moved_seconds(how, moved):
    """The time of a call that moves bytes."""
    return moved / (how["gbps"] * GIB * how["efficient_factor"]) + how["latency_us"] * 1e-6


def bandwidth_bound(bandwidth):
    """Calls by their bytes: of each operation and graph the one that moves the most, and the one that moves the fewest."""
    calls = {}
    with tempfile.TemporaryDirectory() as at:
        whole = ["--platform", one_gpu(at), "--lowering", "default"]
        for options in ([LLAMA, *whole], [LLAMA], ["llama-8b", *whole], ["gpt2", *whole]):
            path = os.path.join(at, "graph.json")
            subprocess.run([DAHL, "graph", "--dtype", "bfloat16", "--export", path, "--model", *options], check=True, stdout=subprocess.DEVNULL)
            of = {}
            for task in json.load(open(path))["tasks"]:
                op = task.get("op", "")
                if op.startswith(("dense", "attention", "feed", "load")) or not task.get("bytes"):
                    continue
                of.setdefault(op, {})[task["shape"]] = task
            for op, shapes in of.items():
                ends = sorted(shapes.values(), key=lambda task: task["bytes"])
                for task in {ends[0]["shape"]: ends[0], ends[-1]["shape"]: ends[-1]}.values():
                    calls[op, task["shape"]] = task
    for (op, shape), task in calls.items():
        how = bandwidth["ce"] if "xent" in op else bandwidth["default"]
        yield line(op, shape, moved_seconds(how, task["bytes"]), task.get("flops", 0), task["bytes"], task.get("type", "bfloat16"))


def exchanges(network):
    """Exchanges of n devices in a ring: its steps are what models know as operations, and the bytes that a device sends as bytes (nn/exchange.go). So the line that a fit
    finds is the data's own form: a latency for the call, one for each step, and a bandwidth."""
    for name, op in network["op"].items():
        if name not in ("all_gather", "reduce_scatter", "all_reduce"):
            continue
        bandwidth = network["bandwidth"]["gbps"] * GIB * op["efficient_factor"]
        for kind in ("bfloat16", "float32"):
            for devices in (2, 4, 8):
                for whole in (2**20, 2**26, 2**32):
                    steps = op["scale"] * (devices - 1)
                    sent = whole * steps // devices
                    yield line(name, f"{whole} bytes on {devices}", sent / bandwidth + (op["fixed_latency_us"] + op["latency_us"] * steps) * 1e-6, steps, sent, kind)


STEP = 13.5e-3  # seconds that a measured step takes besides, by the four steps of bench/llm.md with 4 micro-batches


def updates(bandwidth):
    """Updates of float32 weights by Adam, of which bfloat16 ones are made: a gradient is read, a weight and two moments are read and written, and 2 bytes are written (nn/split.go).
    There is one in a step of a device."""
    for weights in (10**6, 10**8, 10**10):
        yield line("split_adam", str(weights), moved_seconds(bandwidth["default"], 30 * weights) + STEP, 14 * weights, 30 * weights, "float32")


def one_gpu(folder):
    """A machine of one GPU, whose layers are whole."""
    path = os.path.join(folder, "one.toml")
    with open(path, "w") as f:
        f.write('name = "one"\n[[memory]]\nname = "ram"\nbandwidth = "200 GB/s"\n[[memory]]\nname = "hbm"\nbandwidth = "5 TB/s"\n[[device]]\nname = "gpu"\nkind = "cuda"\nmemory = "hbm"\n'
                'speed = { float32 = "80 TF/s", bfloat16 = "1 PF/s" }\n[[device]]\nname = "cpu"\nkind = "cpu"\nmemory = "ram"\nplaced_only = true\nspeed = { float32 = "50 GF/s" }\n[[link]]\nname = "pcie"\nbandwidth = "50 GB/s"\n[[route]]\nfrom = "ram"\nto = "hbm"\nlinks = ["pcie"]\n')
    return path


def main():
    data = json.load(open(sys.argv[1]))
    ops, bandwidth = data["accelerator"]["op"], data["accelerator"]["bandwidth"]
    network = data["network_inside_node"]
    ring = network["bandwidth"]["gbps"] * GIB * network["op"]["reduce_scatter"]["efficient_factor"]
    memory = bandwidth["default"]["gbps"] * GIB * bandwidth["default"]["efficient_factor"]
    speed = ops["matmul"]["tflops"] * ops["matmul"]["efficient_factor"]
    print(HEAD.split("# MODELS\n")[0], end="")
    print("model = [")
    print("  # Products of matrices, measured.", *products(ops["matmul"]), sep="\n")
    print("  # Attention, measured.", *attention(ops, bandwidth["default"]), sep="\n")
    print("  # Calls by their bytes: measured bandwidth and latency.", *bandwidth_bound(bandwidth), sep="\n")
    print("  # Exchanges of several devices, measured, and the update that they split.", *exchanges(network), *updates(bandwidth), sep="\n")
    print("]")
    print(HEAD.split("# MODELS\n")[1], end="")
    for i in range(GPUS):
        print(f'\n[[memory]]\nname = "hbm{i}"\ncapacity = "180 GB"\nbandwidth = "{memory / 1e9:.0f} GB/s"')
    for i in range(GPUS):
        print(f'\n[[device]]\nname = "gpu{i}"\nkind = "cuda"\nmemory = "hbm{i}"\nspeed = {{ bfloat16 = "{speed:.0f} TF/s", float32 = "80 TF/s", float64 = "40 TF/s" }}\ncache = {{ l2 = "126 MB" }}\n'
              'copy_engines = { in = 1, out = 1 }\npower = { idle = "140 W", busy = "1000 W", source = "guess" }')
    for i in range(GPUS):
        print(f'\n[[link]]\nname = "pcie{i}"\nbandwidth = "50 GB/s"\nlatency = "8 us"\nsharing = "duplex"')
        print(f'\n[[link]]\nname = "nvlink{i}"\nbandwidth = "{ring / 1e9:.0f} GB/s"\nlatency = "{network["op"]["reduce_scatter"]["latency_us"] / 2:.2f} us"\nsharing = "duplex"')
    for i in range(GPUS):
        print(f'\n[[route]]\nfrom = "ram"\nto = "hbm{i}"\nlinks = ["pcie{i}"]')
        for j in range(i + 1, GPUS):
            print(f'\n[[route]]\nfrom = "hbm{i}"\nto = "hbm{j}"\nlinks = ["nvlink{i}", "nvlink{j}"]')


main()
