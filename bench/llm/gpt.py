"""Model files of the GPTs of Korthikanti et al. 2022, table 3: python3 bench/llm/gpt.py writes them beside itself."""
import os

MODELS = {"gpt-22b": (48, 6144, 64), "gpt-175b": (96, 12288, 96), "gpt-530b": (105, 20480, 128), "gpt-1t": (128, 25600, 160)}
TEXT = """# The GPT of {words} weights of V. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023, table 3. Written by gpt.py.
# Its attention computes all scores, also those that a mask hides.

name = "{name}"
input = [2048]

[train]
batch = 1
optimizer = "adamw"
lr = 0.0001
decay_dims = 2
clip_norm = 1

[[block]]
kind = "decoder"
layer = [
  {{ kind = "layernorm", name = "ln_1" }},
  {{ kind = "dense", name = "qkv", outputs = {qkv} }},
  {{ kind = "attention", name = "attention", heads = {heads} }},
  {{ kind = "dense", name = "proj", outputs = {width} }},
  {{ kind = "add", name = "add_1", input = ["input", "proj"] }},
  {{ kind = "layernorm", name = "ln_2" }},
  {{ kind = "dense", name = "fc", outputs = {hidden} }},
  {{ kind = "gelu_tanh", name = "gelu" }},
  {{ kind = "dense", name = "fc_proj", outputs = {width} }},
  {{ kind = "add", name = "add_2", input = ["add_1", "fc_proj"] }},
]

[[layer]]
kind = "embedding"
name = "wte"
tokens = 51200
width = {width}

[[layer]]
kind = "positions"
name = "wpe"

[[layer]]
kind = "decoder"
name = "h"
repeat = {layers}

[[layer]]
kind = "layernorm"
name = "ln_f"

[[layer]]
kind = "dense"
name = "lm_head"
outputs = 51200
bias = false
weights_of = "wte.weight"
"""


def main():
    for name, (layers, width, heads) in MODELS.items():
        words = {"b": " billion", "t": " trillion"}[name[-1]].join([name[4:-1], ""])
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".toml"), "w") as f:
            f.write(TEXT.format(name=name, words=words, layers=layers, width=width, heads=heads, qkv=3 * width, hidden=4 * width))


main()
