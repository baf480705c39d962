"""bench/transformers.md: python3 bench/transformers/page.py > bench/transformers.md

DAHL names the program.
"""
import json
import os
import subprocess
import tempfile

DAHL = os.environ.get("DAHL", "dahl")
HERE = os.path.dirname(os.path.abspath(__file__))
# Patterns of the layers that are recomputed: none, the attention, a block from its input.
RECOMPUTED = {
    "gpt2-xl": {"nothing": [], "attention": ["h.*.attn"], "blocks": ["h.*.ln_?", "h.*.attn*", "h.*.mlp.*", "h.*.add_1"]},
    "llama-8b": {"nothing": [], "attention": ["layers.*.self_attn"], "blocks": ["layers.*.*norm", "layers.*.self_attn*", "layers.*.mlp.*", "layers.*.add_1"]},
}
# Layers of a block of GPT-2, what a mixed-precision program keeps of them by Korthikanti et al. 2022 (table 2 and section 4.1) in bytes per s·b·h, and why.
TERMS = [
    ("ln_1", 2, "input of the product for queries, keys and values"),
    ("attn.c_attn", 6, "queries, keys and values"),
    ("attn", 2, "input of the product behind the attention; dahl also keeps a logarithm per query and head"),
    ("attn.c_proj", 1, "mask of a dropout, which dahl draws again"),
    ("add_1", 2, "input of the second normalisation"),
    ("ln_2", 2, "input of the MLP"),
    ("mlp.c_fc", 8, "input of GELU"),
    ("mlp.gelu", 8, "input of the second product of the MLP"),
    ("mlp.c_proj", 1, "mask of a dropout"),
    ("add_2", 2, "input of the first normalisation, of the next block"),
]


SAVES = ("joined loss", "recomputed layers", "micro-batches")  # what a tiling may say that saves memory


def dahl(*arguments):
    began = os.times()
    out = subprocess.run([DAHL, *arguments, "--json"], check=True, capture_output=True, text=True).stdout
    ended = os.times()
    return json.loads(out), ended.children_user + ended.children_system - began.children_user - began.children_system


def steps(at):
    print("| network | samples | recomputed | step | J per sample | kept | reserved on the GPU | evicted per step | `simulate` takes |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, batch in (("gpt2-xl", 4), ("gpt2-xl", 8), ("llama-8b", 1)):
        def row(name, kept, run, took):
            evicted = run.get("evictions", {}).get("bytes", 0) / run["steps"]
            print(f"| {model} | {batch} | {name} | {run['step_s']:.2f} s | {run['energy_j']['per_image']:.0f} | {kept} "
                  f"| {run['reserved_bytes']['hbm0'] / 1e9:.1f} GB | {evicted / 1e9:.1f} GB | {took:.1f} s |")

        for name, patterns in RECOMPUTED[model].items():
            lowering = os.path.join(at, "lowering.toml")
            with open(lowering, "w") as f:
                f.write(f"recompute = {json.dumps(patterns)}\n")
            options = ["--model", model, "--batch", str(batch), "--lowering", lowering]
            graph, _ = dahl("graph", *options)
            run, took = dahl("simulate", "--platform", "nvlink", "--devices", "gpu0", "--policy", "heft", "--out", os.path.join(at, "run"), *options)
            row(name, f"{graph['sequences']['kept_bytes'] / 1e9:.2f} GB", run, took)
        run, took = dahl("simulate", "--platform", "nvlink", "--devices", "gpu0", "--out", os.path.join(at, "run"), "--model", model, "--batch", str(batch))
        tiles = (json.load(open(os.path.join(at, "run", "manifest.json"))).get("chosen_devices") or {}).get("tiles", "").split("; ")
        row("as the default chooses: " + (", ".join(t for t in tiles if t in SAVES or t.endswith(SAVES)) or "nothing"), "-", run, took)


def chosen(at):
    print("\n| network | samples | chosen | devices | tasks | step | J per sample | `simulate` takes |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, batch in (("gpt2-xl", 4), ("gpt2-xl", 8), ("llama-8b", 1)):
        run, took = dahl("simulate", "--platform", "nvlink", "--model", model, "--batch", str(batch), "--out", os.path.join(at, "run"))
        manifest = json.load(open(os.path.join(at, "run", "manifest.json")))
        choice = manifest.get("chosen_devices") or {}
        print(f"| {model} | {batch} | {choice.get('strategy', 'tiles by a model of the layers')} | {choice.get('devices', 'all')} | {run['tasks'] // run['steps']:,} | {run['step_s']:.2f} s | {run['energy_j']['per_image']:.0f} | {took:.1f} s |")


def activations(at):
    batch = 4
    s, h, a = 1024, 1600, 25
    lowering = os.path.join(at, "none.toml")
    open(lowering, "w").close()
    graph, _ = dahl("graph", "--model", "gpt2-xl", "--batch", str(batch), "--lowering", lowering)
    kept = {part["layer"]: part.get("kept_bytes", 0) for part in graph["parts"] if part["phase"] == "forward"}
    unit, total, theirs = s * batch * h, 0, 0
    print("| term | paper, bytes | dahl, bytes | dahl in elements of 2 bytes | what it is |\n| --- | --- | --- | --- | --- |")
    for layer, bytes_, what in TERMS:
        mine = kept["h.7." + layer] / unit
        total, theirs = total + mine, theirs + bytes_
        print(f"| {layer} | {bytes_} | {mine:.2f} | {mine / 2:.2f} | {what} |")
    print(f"| **sum, × s·b·h** | **{theirs}** | **{total:.2f}** | **{total / 2:.2f}** | |")
    print(f"| scores and softmax | 5·a·s/h = {5 * a * s / h:.0f} | 0 | 0 | scores 2, dropped scores 2, their mask 1; tiled attention makes them again from logarithms |")
    print(f"\nOf a block of gpt2-xl with {batch} samples these are {total * unit / 1e6:.0f} MB in dahl and {(theirs + 5 * a * s / h) * unit / 1e6:.0f} MB in the paper's program.")


def main():
    parts = open(os.path.join(HERE, "page.md")).read().split("TABLE\n")
    with tempfile.TemporaryDirectory() as at:
        for text, table in zip(parts, (steps, chosen, activations, None)):
            print(text, end="")
            if table:
                table(at)


main()
