"""bench/b200.md: python3 bench/b200/layer.py FILE.json STEPS.csv > bench/b200.md

FILE.json is SimuMax's configs/system/b200_bf16_ceperm.json, STEPS.csv measured steps of the first 12 layers of Llama 3 of 70 billion weights on such a node. DAHL
names the program.
"""
import collections
import csv
import json
import os
import subprocess
import sys
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
HERE = os.path.dirname(os.path.abspath(__file__))
T, WIDTH, HIDDEN, QKV, VOCABULARY = 4096, 8192, 28672, 10240, 128256
LAYER = ["input_layernorm", "qkv_proj", "rotary", "attention", "o_proj", "add_1", "post_attention_layernorm", "gate_proj", "silu", "up_proj", "multiply", "down_proj", "add_2"]
HEAD = ["norm", "lm_head", "loss"]


def simulated():
    """Seconds of each layer and phase in one step on one GPU."""
    with tempfile.TemporaryDirectory() as at:
        out = os.path.join(at, "run")
        subprocess.run([DAHL, "simulate", "--model", os.path.join(HERE, "llama-70b-layer.toml"), "--platform", "b200", "--dtype", "bfloat16", "--devices", "gpu0", "--policy", "heft",
                        "--lowering", "default", "--steps", "1", "--out", out], check=True, stdout=subprocess.DEVNULL)
        graph, schedule = (json.load(open(os.path.join(out, name))) for name in ("graph.json", "schedule.json"))
    labels = {task["name"]: task.get("labels", {}) for task in graph["tasks"]}
    seconds = collections.Counter()
    for task in schedule["spans"]:
        of = labels.get(task["task"], {})
        seconds[of.get("layer"), of.get("phase")] += (task["end_ns"] - task["start_ns"]) * 1e-9
    return seconds


def product(ops, layout, m, k, n):
    accumulate, of = ("True", "fp32") if layout == "NT" else ("False", "bf16")
    efficiency = ops["matmul"]["accurate_efficient_factor"][f"b=1, m={m}, k={k}, n={n}, layout={layout}, accumulate={accumulate}, out_dtype={of}"]
    return 2 * m * k * n / (ops["matmul"]["tflops"] * 1e12 * efficiency)


def measured(data):
    """Seconds forward and backward of the data's own terms. Gate and up are one product there."""
    ops = data["accelerator"]["op"]
    terms = {}
    for name, inputs, outputs in (("qkv_proj", WIDTH, QKV), ("o_proj", WIDTH, WIDTH), ("gate_proj + up_proj", WIDTH, 2 * HIDDEN), ("down_proj", HIDDEN, WIDTH), ("lm_head", WIDTH, VOCABULARY)):
        terms[name] = product(ops, "TN", T, inputs, outputs), product(ops, "NN", T, outputs, inputs) + product(ops, "NT", outputs, T, inputs)
    name = f"batch=1, seq_len={T}, head_num=64, kv_head_num=8, qk_head_dim=128, v_head_dim=128, qkv_contiguous=False"
    scores = 2 * 64 * 128 * T * T
    terms["attention"] = tuple(count * scores / (ops[op]["tflops"] * 1e12 * ops[op]["accurate_efficient_factor"][name]) for op, count in (("sdp_fwd", 2), ("sdp_bwd", 5)))
    return terms


def main():
    data = json.load(open(sys.argv[1]))
    seconds, terms = simulated(), measured(data)
    ms = lambda x: f"{x * 1e3:.3f}"
    of = lambda names, phases: sum(seconds[name, phase] for name in names for phase in phases)
    print(open(os.path.join(HERE, "page.md")).read(), end="")
    print("\n| term | dahl, forward | data | dahl, backward | data |\n| --- | --- | --- | --- | --- |")
    rest = [0.0, 0.0]
    for name in LAYER + HEAD:
        if name == "up_proj":
            continue
        name = {"gate_proj": "gate_proj + up_proj"}.get(name, name)
        layers = name.split(" + ")
        forward, backward = of(layers, ("forward", "loss")), of(layers, ("backward",))
        known = terms.get(name)
        print(f"| {name} | {ms(forward)} | {ms(known[0]) if known else ''} | {ms(backward)} | {ms(known[1]) if known else ''} |")
    forward, backward = of(LAYER, ("forward",)), of(LAYER, ("backward",))
    head = of(HEAD, ("forward", "loss", "backward"))
    print(f"\nOne layer takes {ms(forward)} ms forward and {ms(backward)} ms backward, in all {ms(forward + backward)}; the last layer with its norm and its loss {ms(head)} ms.")
    steps = {(row["tensor"], row["pipeline"], row["micro_batches"]): float(row["step_ms"]) for row in csv.DictReader(open(sys.argv[2]))}
    each = (steps["1", "2", "8"] - steps["1", "2", "4"]) / 4
    stage = (6 * (forward + backward) + head) * 1e3
    print(f"\nTwo stages of six layers on a GPU each (tensor 1, pipeline 2) were measured to take {each:.1f} ms for each further micro-batch. This is the time of the slower\n"
          f"stage, which has the last layer. The terms above give {stage:.1f} ms for it, {100 * (stage / each - 1):+.1f} %.")
    print("\nThe update of the weights is not among these terms, which was measured on several devices.")


main()
