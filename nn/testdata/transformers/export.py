#!/usr/bin/python3
"""Writes networks of sequences as PyTorch exports them, and what onnxruntime says of some tokens: NAME.onnx and outputs.json.

    cd nn/testdata/transformers && python3 export.py [NAME...]

It needs PyTorch, torchvision, onnxscript and onnxruntime. With names it writes these files alone. Files "script" are by the exporter of TorchScript, and others by that of torch.export. Extents are
different primes: 7 positions, 17 tokens, 3 heads of 5 features, 13 or 11 features between; weights are random.
"""
import json
import sys
import warnings

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models.vision_transformer import VisionTransformer

T, TOKENS, HEADS, WIDTH, BETWEEN = 7, 17, 3, 15, 13


def heads(x, n):
    return x.view(x.size(0), x.size(1), n, -1).transpose(1, 2)


class GPT(nn.Module):
    """nanoGPT's form: one layer, the last weight is the table. Without flash, attention is written out."""

    def __init__(self, flash):
        super().__init__()
        self.wte, self.wpe, self.ln_1, self.ln_2 = nn.Embedding(TOKENS, WIDTH), nn.Embedding(T, WIDTH), nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.out, self.lm_head = nn.Linear(WIDTH, BETWEEN), nn.Linear(BETWEEN, WIDTH, bias=False), nn.Linear(WIDTH, TOKENS, bias=False)
        self.lm_head.weight, self.flash, self.dropout = self.wte.weight, flash, nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(T, T)).view(1, 1, T, T))

    def forward(self, tokens):
        b, t = tokens.size()
        x = self.dropout(self.wte(tokens) + self.wpe(torch.arange(0, t, dtype=torch.long)))
        q, k, v = (heads(p, HEADS) for p in self.c_attn(self.ln_1(x)).split(WIDTH, dim=2))
        if self.flash:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * (1.0 / k.size(-1) ** 0.5)
            y = self.dropout(F.softmax(scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1)) @ v
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(b, t, WIDTH))
        return self.lm_head(x + self.out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh" if self.flash else "none")))


class Encoder(nn.Module):
    """PyTorch's own layer, causal or not."""

    def __init__(self, samples_first, **settings):
        super().__init__()
        self.embed, self.positions, self.samples_first = nn.Embedding(TOKENS, WIDTH), nn.Parameter(torch.randn(T, WIDTH)), samples_first
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, BETWEEN, batch_first=samples_first, **settings)
        self.encoder, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.Linear(WIDTH, 11)

    def forward(self, tokens):
        x = self.embed(tokens) + self.positions
        if self.samples_first:
            return self.head(self.encoder(x))
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        return self.head(self.encoder(x.transpose(0, 1), mask=mask, is_causal=True).transpose(0, 1))


class Grouped(nn.Module):
    """Three dense layers for queries, keys and values, of which two heads share one; RMSNorm and SwiGLU."""

    def __init__(self):
        super().__init__()
        width = 2 * WIDTH
        self.embed, self.norm = nn.Embedding(TOKENS, width), nn.RMSNorm(width, eps=1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(width, n, bias=False) for n in (width, WIDTH, WIDTH, width))
        self.w1, self.w2, self.w3, self.head = nn.Linear(width, 11), nn.Linear(width, 11), nn.Linear(11, width), nn.Linear(width, TOKENS)

    def forward(self, tokens):
        x = self.embed(tokens)
        h = self.norm(x)
        y = F.scaled_dot_product_attention(heads(self.q(h), 6), heads(self.k(h), 3), heads(self.v(h), 3), is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return self.head(x + self.w3(F.silu(self.w1(x)) * self.w2(x)))


class ViT(nn.Module):
    """A vision transformer with the mean of all positions."""

    def __init__(self):
        super().__init__()
        self.patches, self.positions = nn.Conv2d(2, WIDTH, 2, 2), nn.Parameter(torch.randn(1, 35, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, BETWEEN, batch_first=True, norm_first=True, activation="gelu")
        self.encoder, self.norm, self.head = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 11)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.encoder(x)).mean(1))


class Torchvision(VisionTransformer):
    """torchvision's vision transformer with a class token, of two channels."""

    def __init__(self):
        super().__init__(14, 2, 1, HEADS, WIDTH, BETWEEN, num_classes=11)
        self.conv_proj = nn.Conv2d(2, WIDTH, 2, 2)


class Pooled(nn.Module):
    """PyTorch's encoder, and a pooler of its first position as of a BERT."""

    def __init__(self):
        super().__init__()
        self.embed, self.pooler, self.head = nn.Embedding(TOKENS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 11)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, BETWEEN, batch_first=True), 1, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.head(torch.tanh(self.pooler(self.encoder(self.embed(tokens))[:, 0])))


NETWORKS = {
    "gpt-script": (GPT(False), True, 17),
    "gpt-flash-script": (GPT(True), True, 16),
    "gpt": (GPT(True), False, 23),
    "gpt-18": (GPT(False), False, 18),
    "encoder-script": (Encoder(True), True, 17),
    "encoder": (Encoder(False, norm_first=True, activation="gelu"), False, 20),
    "grouped": (Grouped(), False, 23),
    "grouped-20": (Grouped(), False, 20),
    "vit-script": (ViT(), True, 17),
    "vit": (ViT(), False, 23),
    "torchvision-script": (Torchvision(), True, 17),
    "torchvision": (Torchvision(), False, 20),
    "pooled-script": (Pooled(), True, 17),
    "pooled": (Pooled(), False, 23),
}


def main(names):
    torch.manual_seed(1)
    tokens, images = torch.randint(0, TOKENS, (2, T)), torch.randint(0, 256, (2, 2, 10, 14))
    outputs, squares = {}, torch.randint(0, 256, (2, 2, 14, 14), generator=torch.Generator().manual_seed(2))
    if names:
        with open("outputs.json") as f:
            outputs = json.load(f)["outputs"]
    for name in names or NETWORKS:
        net, script, opset = NETWORKS[name]
        net.eval()
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape) / 4)
        file, x = name + ".onnx", images / 255 if isinstance(net, ViT) else squares / 255 if isinstance(net, Torchvision) else tokens
        if script:
            torch.onnx.export(net, (x,), file, dynamo=False, opset_version=opset, input_names=["x"], dynamic_axes={"x": {0: "n"}})
        else:
            torch.onnx.export(net, (x,), file, dynamo=True, opset_version=opset, external_data=False, verbose=False, dynamic_shapes=({0: torch.export.Dim("n")},))
            strip(file)
        session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
        said = session.run(None, {session.get_inputs()[0].name: x.numpy()})[0]
        with torch.no_grad():
            assert np.abs(said - net(x).numpy()).max() < 1e-5 * np.abs(said).max(), name
        outputs[name] = said.flatten().tolist()
    with open("outputs.json", "w") as f:
        json.dump({"tokens": tokens.flatten().tolist(), "images": images.flatten().tolist(), "squares": squares.flatten().tolist(), "outputs": outputs}, f)
        f.write("\n")


def strip(file):
    """Leaves out what the exporter says of its own source, most of the file."""
    import onnx

    model = onnx.load(file)
    for node in model.graph.node:
        node.ClearField("metadata_props")
        node.ClearField("doc_string")
    for value in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        value.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    onnx.save(model, file)


warnings.filterwarnings("ignore")
main(sys.argv[1:])
