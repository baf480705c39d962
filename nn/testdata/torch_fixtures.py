#!/usr/bin/python3
"""Writes torch_fixtures.json, what PyTorch computes for the tests of package nn.

Networks of EXPORTED are also written as NAME.onnx, which needs packages onnx and onnxscript.

All of it, or only the fixtures that are named; the others stay as they are:

    cd nn/testdata && python3 torch_fixtures.py [NAME...]

It needs PyTorch and numpy, and computes in float64. Each fixture says with which
version of PyTorch it was made; versions differ in the last bits. The random numbers
of a fixture are drawn from its name, so a new one changes no other.

A new kind of layer is a line in APPLY and a network around it in LAYERS. A layer reads the one
before it, or those that its "input" names: conv1, relu1, pool1 ... as dahl counts them.

Weights are float32 values, so that a float32 run starts from the same numbers.
Extents are pairwise different primes: batch 3, channels 2, filters 5, kernel 7,
height 11, width 13, classes 17; of groups their number and what they have. Arrays are little-endian in base64.
"""
import base64
import json
import math
import sys
import zlib

import numpy as np
import torch
import torch.nn.functional as F

FILE = "torch_fixtures.json"
BATCH, INPUT, CLASSES = 3, [2, 11, 13], 17
FIRST = {"kind": "conv2d", "filters": 5, "kernel": 7}
FIRST_SMALL = {"kind": "conv2d", "filters": 5, "kernel": 7, "stride": 2}
HEAD = [{"kind": "flatten"}, {"kind": "dense", "outputs": CLASSES}]

def gpt_layer(before, number):
    """A layer of a GPT, the number counts from 1."""
    return [{"kind": "layernorm"}, {"kind": "dense", "outputs": 45}, {"kind": "attention", "heads": 3, "causal": 1}, {"kind": "dense", "outputs": 15},
            {"kind": "add", "input": [before, "fc%d" % (4 * number - 2)]}, {"kind": "layernorm"}, {"kind": "dense", "outputs": 61}, {"kind": "gelu_tanh"},
            {"kind": "dense", "outputs": 15}, {"kind": "add", "input": ["add%d" % (2 * number - 1), "fc%d" % (4 * number)]}]


def vit_layer(before, number):
    """The same of a vision transformer: each position sees all."""
    return [dict(l, causal=0) if l["kind"] == "attention" else {"kind": "gelu"} if l["kind"] == "gelu_tanh" else l for l in gpt_layer(before, number)]


def llama_layer(before, number):
    """A layer of a Llama with six heads of four features, of which three share keys and values, the number counts from 1."""
    norm, fc, add = "rms%d" % (2 * number), 5 * number, 2 * number
    return [{"kind": "rmsnorm"}, {"kind": "dense", "outputs": 40, "bias": 0}, {"kind": "rotary", "heads": 8, "width": 4, "base": 500000},
            {"kind": "attention", "heads": 6, "key_heads": 2, "causal": 1}, {"kind": "dense", "outputs": 24, "bias": 0},
            {"kind": "add", "input": [before, "fc%d" % (fc - 3)]}, {"kind": "rmsnorm"}, {"kind": "dense", "outputs": 13, "bias": 0}, {"kind": "silu"},
            {"kind": "dense", "outputs": 13, "bias": 0, "input": [norm]}, {"kind": "multiply", "input": ["silu%d" % number, "fc%d" % (fc - 1)]},
            {"kind": "dense", "outputs": 24, "bias": 0}, {"kind": "add", "input": ["add%d" % (add - 1), "fc%d" % fc]}]


LAYERS = {
    "conv2d": [FIRST, {"kind": "conv2d", "filters": 19, "kernel": 3, "pad": 1, "stride": 2},
               {"kind": "conv2d", "filters": 7, "kernel": 2, "bias": 0}] + HEAD,
    "dense": [FIRST_SMALL, {"kind": "flatten"}, {"kind": "dense", "outputs": 23}, {"kind": "dense", "outputs": CLASSES, "bias": 0}],
    "relu": [FIRST_SMALL, {"kind": "relu"}] + HEAD,
    "maxpool": [FIRST, {"kind": "maxpool", "size": 3, "stride": 2}, {"kind": "maxpool", "size": 2}] + HEAD,
    "avgpool": [FIRST, {"kind": "avgpool", "size": 3, "stride": 2}, {"kind": "avgpool", "size": 2}] + HEAD,
    "flatten": [FIRST_SMALL] + HEAD,
    "tanh": [FIRST_SMALL, {"kind": "tanh"}] + HEAD,
    "sigmoid": [FIRST_SMALL, {"kind": "sigmoid"}] + HEAD,
    "gelu": [FIRST_SMALL, {"kind": "gelu"}] + HEAD,
    "gelu_tanh": [FIRST_SMALL, {"kind": "gelu_tanh"}] + HEAD,
    "silu": [FIRST_SMALL, {"kind": "silu"}] + HEAD,
    "leaky_relu": [FIRST_SMALL, {"kind": "leaky_relu", "slope": 0.125}] + HEAD,
    "batchnorm": [FIRST_SMALL, {"kind": "batchnorm", "eps": 0.0009765625, "momentum": 0.25}] + HEAD,
    # A dropout counts the layers before it.
    "dropout": [FIRST_SMALL, {"kind": "dropout", "p": 0.25, "before": 1}, {"kind": "flatten"}, {"kind": "dropout", "p": 0.5, "before": 3}, HEAD[1]],
    "globalavgpool": [FIRST, {"kind": "globalavgpool"}] + HEAD,
    "add": [FIRST_SMALL, {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1}, {"kind": "add", "input": ["conv1", "conv2"]}] + HEAD,
    "multiply": [FIRST_SMALL, {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1}, {"kind": "silu"}, {"kind": "multiply", "input": ["conv1", "silu1"]}] + HEAD,
    "concat": [FIRST_SMALL, {"kind": "conv2d", "filters": 3, "kernel": 3, "pad": 1}, {"kind": "concat", "input": ["conv1", "conv2"]}] + HEAD,
    # Of sequences of tokens, see TOKENS.
    "embedding": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 13}, {"kind": "relu"}, {"kind": "dense", "outputs": CLASSES}],
    "positions": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "positions"}, {"kind": "dense", "outputs": CLASSES}],
    "class_token": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "class_token"}, {"kind": "dense", "outputs": 13}, {"kind": "select"}, {"kind": "flatten"}] + HEAD[1:],
    "select": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 13}, {"kind": "select", "position": 4}, {"kind": "flatten"}] + HEAD[1:],
    "layernorm": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "layernorm"}, {"kind": "dense", "outputs": CLASSES}],
    "rmsnorm": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "rmsnorm"}, {"kind": "dense", "outputs": CLASSES}],
    "attention": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 30}, {"kind": "attention", "heads": 6, "key_heads": 2, "causal": 1}, {"kind": "dense", "outputs": CLASSES}],
    "attention of all": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 27}, {"kind": "attention", "heads": 3}, {"kind": "dense", "outputs": CLASSES}],
    "attention of some": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 18}, {"kind": "attention", "heads": 2, "causal": 1, "window": 3}, {"kind": "dense", "outputs": CLASSES}],
    "rotary": [{"kind": "embedding", "tokens": 11, "width": 5}, {"kind": "dense", "outputs": 24}, {"kind": "rotary", "heads": 4, "width": 4},
               {"kind": "attention", "heads": 2}, {"kind": "dense", "outputs": CLASSES}],
    # Padding that no position sees, and the embedding of the part of a sample.
    "mask": [{"kind": "mask", "token": 1}, {"kind": "embedding", "tokens": 5, "width": 6, "input": ["input"]}, {"kind": "dense", "outputs": 30},
             {"kind": "attention", "heads": 6, "key_heads": 2, "input": ["fc1", "mask1"]}, {"kind": "dense", "outputs": CLASSES}],
    "segments": [{"kind": "segments", "token": 1}, {"kind": "embedding", "tokens": 2, "width": 6}, {"kind": "embedding", "tokens": 5, "width": 6, "input": ["input"]},
                 {"kind": "add", "input": ["embed1", "embed2"]}, {"kind": "layernorm"}, {"kind": "dense", "outputs": CLASSES}],
    # Patches of an image that attend to each other, and the mean of them.
    "pixels": [{"kind": "conv2d", "filters": 5, "kernel": 3, "stride": 3}, {"kind": "pixels"}, {"kind": "dense", "outputs": 27}, {"kind": "attention", "heads": 3},
               {"kind": "pixels"}, {"kind": "globalavgpool"}] + HEAD,
    # A block of a transformer, with a SwiGLU.
    "transformer": [{"kind": "embedding", "tokens": 11, "width": 6}, {"kind": "rmsnorm"}, {"kind": "dense", "outputs": 30}, {"kind": "rotary", "heads": 4, "width": 6},
                    {"kind": "attention", "heads": 3, "key_heads": 1, "causal": 1}, {"kind": "dense", "outputs": 6}, {"kind": "add", "input": ["embed1", "fc2"]},
                    {"kind": "layernorm"}, {"kind": "dense", "outputs": 13}, {"kind": "dense", "outputs": 13, "input": ["ln1"]}, {"kind": "silu"},
                    {"kind": "multiply", "input": ["fc3", "silu1"]}, {"kind": "dense", "outputs": 6}, {"kind": "add", "input": ["add1", "fc5"]},
                    {"kind": "dense", "outputs": CLASSES}],
    # GPT of two layers with three heads of five features, whose last layer has the table of the first.
    "gpt": [{"kind": "embedding", "tokens": CLASSES, "width": 15}, {"kind": "positions"}] + gpt_layer("positions1", 1) + gpt_layer("add2", 2) +
           [{"kind": "layernorm"}, {"kind": "dense", "outputs": CLASSES, "bias": 0, "weights_of": "embed1.weight"}],
    # Llama of two layers.
    "llama": [{"kind": "embedding", "tokens": 19, "width": 24}] + llama_layer("embed1", 1) + llama_layer("add2", 2) +
             [{"kind": "rmsnorm"}, {"kind": "dense", "outputs": CLASSES, "bias": 0}],
    # Vision transformer of two layers, 3·4 patches and a class token.
    "vit": [{"kind": "conv2d", "filters": 15, "kernel": 3, "stride": 3}, {"kind": "pixels"}, {"kind": "class_token"}, {"kind": "positions"}] +
           vit_layer("positions1", 1) + vit_layer("add2", 2) + [{"kind": "layernorm"}, {"kind": "select"}] + HEAD,
    # Pooling with padding, after a convolution with which it would be fused without.
    "padded": [FIRST, {"kind": "relu"}, {"kind": "maxpool", "size": 3, "stride": 2, "pad": 1}, {"kind": "avgpool", "size": 2, "stride": 1, "pad": 1}] + HEAD,
    # Windows and paddings that differ between rows and columns, of convolutions and poolings, and from side to side.
    "rectangular": [{"kind": "conv2d", "filters": 5, "kernel": [3, 5], "pad": [1, 2], "stride": [1, 2]}, {"kind": "relu"},
                    {"kind": "maxpool", "size": [2, 3], "stride": [1, 2], "pad": [1, 0]},
                    {"kind": "conv2d", "filters": 7, "kernel": [2, 1], "pad": [2, 0, 1, 3], "stride": [2, 1]},
                    {"kind": "avgpool", "size": [3, 2], "stride": [2, 1], "pad": [1, 0]}] + HEAD,
    # Taps apart, with strides that share a divisor with the distance, and that share none.
    "dilated": [{"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 2, "dilation": 2}, {"kind": "relu"},
                {"kind": "conv2d", "filters": 7, "kernel": 3, "pad": 3, "dilation": [3, 2], "stride": 2}, {"kind": "relu"},
                {"kind": "conv2d", "filters": 3, "kernel": [3, 2], "dilation": [2, 4], "stride": [3, 2], "pad": [3, 1]}] + HEAD,
    # Depthwise and pointwise in turn, one filter per channel and two; groups of several channels and filters.
    "separable": [FIRST_SMALL, {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1, "groups": 5},
                  {"kind": "conv2d", "filters": 6, "kernel": 1}, {"kind": "relu"},
                  {"kind": "conv2d", "filters": 12, "kernel": 3, "pad": 1, "groups": 6}, {"kind": "relu"},
                  {"kind": "conv2d", "filters": 21, "kernel": [2, 3], "pad": [0, 1], "groups": 3}, {"kind": "relu"},
                  {"kind": "conv2d", "filters": 21, "kernel": 2, "stride": 2, "groups": 21, "bias": 0}] + HEAD,
    # All of it, for ONNX files.
    "windows": [{"kind": "conv2d", "filters": 6, "kernel": [3, 5], "pad": [1, 2], "stride": [1, 2]}, {"kind": "relu"},
                {"kind": "conv2d", "filters": 6, "kernel": 3, "pad": 1, "groups": 6}, {"kind": "conv2d", "filters": 10, "kernel": 1}, {"kind": "relu"},
                {"kind": "maxpool", "size": [2, 3], "stride": [1, 2], "pad": [1, 0]},
                {"kind": "conv2d", "filters": 4, "kernel": 3, "dilation": [3, 1], "pad": [3, 1], "groups": 2, "bias": 0}, {"kind": "relu"},
                {"kind": "avgpool", "size": [3, 2], "stride": [2, 1], "pad": [1, 0]}] + HEAD,
    # A layer for every operator of ONNX files.
    "exchange": [{"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1}, {"kind": "relu"}, {"kind": "maxpool", "size": 3, "stride": 2, "pad": 1},
                 {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1, "bias": 0}, {"kind": "add", "input": ["pool1", "conv2"]},
                 {"kind": "leaky_relu", "slope": 0.125}, {"kind": "conv2d", "filters": 3, "kernel": 3, "pad": 1, "stride": 2}, {"kind": "gelu"},
                 {"kind": "avgpool", "size": 2, "stride": 1, "pad": 1}, {"kind": "flatten"},
                 {"kind": "conv2d", "filters": 7, "kernel": 2, "input": ["leaky_relu1"]}, {"kind": "gelu_tanh"}, {"kind": "globalavgpool"},
                 {"kind": "flatten"}, {"kind": "concat", "input": ["flatten1", "flatten2"]}, {"kind": "dense", "outputs": 11}, {"kind": "tanh"},
                 {"kind": "dense", "outputs": 19}, {"kind": "sigmoid"}, {"kind": "dense", "outputs": CLASSES, "bias": 0}],
    # Two residual blocks: a rectified value that a convolution and a sum read, one that two
    # convolutions read, a sum of three, and a value that is added to itself.
    "residual": [FIRST_SMALL, {"kind": "relu"},
                 {"kind": "conv2d", "filters": 7, "kernel": 3, "pad": 1}, {"kind": "relu"},
                 {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1}, {"kind": "add", "input": ["relu1", "conv3"]}, {"kind": "relu"},
                 {"kind": "conv2d", "filters": 3, "kernel": 2}, {"kind": "relu"},
                 {"kind": "conv2d", "filters": 3, "kernel": 3, "pad": 1}, {"kind": "tanh"},
                 {"kind": "conv2d", "filters": 3, "kernel": 1, "input": ["relu4"]},
                 {"kind": "add", "input": ["relu4", "tanh1", "conv6"]}, {"kind": "add", "input": ["add2", "add2"]}] + HEAD,
    # Two blocks of a residual network, the second with a convolution on the way around, and what is normalised
    # and rectified before a pooling. A convolution has a bias, which the mean takes away again.
    "normalised": [dict(FIRST_SMALL, pad=2, bias=0), {"kind": "batchnorm"}, {"kind": "relu"}, {"kind": "maxpool", "size": 2},
                   {"kind": "conv2d", "filters": 3, "kernel": 3, "pad": 1}, {"kind": "batchnorm", "momentum": 0.5}, {"kind": "relu"},
                   {"kind": "conv2d", "filters": 5, "kernel": 3, "pad": 1, "bias": 0}, {"kind": "batchnorm"},
                   {"kind": "add", "input": ["bn3", "pool1"]}, {"kind": "relu"},
                   {"kind": "conv2d", "filters": 7, "kernel": 3, "pad": 1, "stride": 2, "bias": 0}, {"kind": "batchnorm"}, {"kind": "relu"},
                   {"kind": "conv2d", "filters": 7, "kernel": 1, "stride": 2, "bias": 0, "input": ["relu3"]}, {"kind": "batchnorm"},
                   {"kind": "add", "input": ["relu4", "bn5"]}, {"kind": "relu"}] + HEAD,
    # Concatenations: one within another, of pooled convolutions and the input, and of features.
    # A value is in two of them, and another twice in one.
    "inception": [{"kind": "conv2d", "filters": 3, "kernel": 3, "pad": 1}, {"kind": "relu"}, {"kind": "maxpool", "size": 2},
                  {"kind": "maxpool", "size": 2, "input": ["input"]}, {"kind": "concat", "input": ["pool1", "pool2"]},
                  {"kind": "conv2d", "filters": 7, "kernel": 3, "pad": 1}, {"kind": "relu"},
                  {"kind": "concat", "input": ["concat1", "relu2"]},
                  {"kind": "concat", "input": ["relu2", "relu2", "pool1"]},
                  {"kind": "globalavgpool"}, {"kind": "flatten"},
                  {"kind": "conv2d", "filters": 5, "kernel": 2, "input": ["concat2"]}, {"kind": "relu"}, {"kind": "flatten"},
                  {"kind": "dense", "outputs": 11}, {"kind": "relu"},
                  {"kind": "concat", "input": ["relu4", "flatten1"]}, {"kind": "dense", "outputs": CLASSES}],
}

# Networks of sequences of POSITIONS tokens below a number, with a label at each position of their outputs.
TOKENS = {"embedding": 11, "positions": 11, "class_token": 11, "select": 11, "layernorm": 11, "rmsnorm": 11, "attention": 11, "attention of all": 11, "attention of some": 11, "rotary": 11, "mask": 5, "segments": 5, "transformer": 11, "gpt": CLASSES, "llama": 19}
POSITIONS = 7

STATE = ["weight", "bias", "running_mean", "running_var"]
EXPORTED = ["exchange", "windows", "normalised"]

OPTIMIZERS = {
    "sgd": {"kind": "sgd", "lr": 0.5},
    "momentum": {"kind": "sgd", "lr": 0.25, "momentum": 0.9},
    "momentum-decay": {"kind": "sgd", "lr": 0.25, "momentum": 0.875, "weight_decay": 0.03125},
    "nesterov-decay": {"kind": "sgd", "lr": 0.25, "momentum": 0.75, "weight_decay": 0.0625, "nesterov": 1},
    "adam": {"kind": "adam", "lr": 0.125, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
    "adam-decay": {"kind": "adam", "lr": 0.0625, "beta1": 0.75, "beta2": 0.875, "eps": 0.0078125, "weight_decay": 0.03125},
    "adamw": {"kind": "adamw", "lr": 0.125, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.125},
    "adamw-long": {"kind": "adamw", "lr": 0.03125, "beta1": 0.9, "beta2": 0.99, "eps": 0.5, "weight_decay": 0.25, "steps": 20},
    "smoothing": {"kind": "sgd", "lr": 0.25, "steps": 20, "label_smoothing": 0.125},
    "mse": {"kind": "sgd", "lr": 0.25, "steps": 20, "loss": "mse"},
    "clipping": {"kind": "sgd", "lr": 0.25, "steps": 20, "clip_norm": 0.75},
    "clipping-decay": {"kind": "adam", "lr": 0.03125, "beta1": 0.75, "beta2": 0.875, "eps": 0.5, "weight_decay": 0.0625, "steps": 20, "clip_norm": 0.75},
    "warm-up": {"kind": "sgd", "lr": 0.25, "steps": 20, "schedule": "constant warmup=7steps"},
    "step": {"kind": "sgd", "lr": 0.25, "steps": 20, "schedule": "step every=2epochs gamma=0.5 warmup=2epochs from=0.125"},
    "multistep": {"kind": "sgd", "lr": 0.25, "steps": 20, "schedule": "multistep milestones=1/3/4epochs gamma=0.5 warmup=2epochs from=0.125"},
    "cosine": {"kind": "sgd", "lr": 0.25, "steps": 20, "schedule": "cosine over=13steps min=0.03125"},
    "everything": {"kind": "adamw", "lr": 0.03125, "beta1": 0.9, "beta2": 0.99, "eps": 0.5, "weight_decay": 0.25, "steps": 20,
                   "label_smoothing": 0.125, "clip_norm": 0.75, "schedule": "cosine over=11steps min=0.001 warmup=5steps from=0.25"},
}
OPTIMIZERS["nanogpt"] = {"kind": "adamw", "lr": 0.03125, "beta1": 0.9, "beta2": 0.95, "eps": 0.5, "weight_decay": 0.25, "decay_dims": 2, "steps": 20,
                         "clip_norm": 0.75, "schedule": "cosine_to over=9steps min=0.003125 warmup=5steps from=%r" % (1 / 6)}
STEPS, SAMPLES, FEATURES, OPT_CLASSES = 5, 11, 7, 5
STEPS_PER_EPOCH = 3  # of schedules


def coded(values, dtype="<f8"):
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def weights(draw, *shape):
    return (torch.rand(*shape, generator=draw) - 0.5).to(torch.float32).to(torch.float64)


def stream(name):
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def conv2d(l, x, w):
    pad = l.get("pad", 0)
    if isinstance(pad, list) and len(pad) == 4:
        top, left, bottom, right = pad
        x, pad = F.pad(x, [left, right, top, bottom]), 0
    return F.conv2d(x, *w, padding=pad, **{k: l.get(k, 1) for k in ("stride", "dilation", "groups")})


def philox(key, counter):
    """Philox 4x32-10 of Salmon et al., SC 2011."""
    k, c = [key & 0xFFFFFFFF, key >> 32], list(counter)
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


SEED = 0x0123456789ABCDEF


def dropout(l, x, w):
    """With the draws of step 1."""
    kept = torch.zeros_like(x)
    for n, sample in enumerate(kept.view(len(x), -1)):
        words = philox(SEED, [1, 0, l["before"], n])
        key = words[0] | words[1] << 32
        for e in range(len(sample)):
            sample[e] = philox(key, [e // 4, 0, 0, 0])[e % 4] >= l["p"] * 2**32
    return x * kept / (1 - l["p"])


def attention(l, x, _):
    """The function of PyTorch, on the parts of x, with the mask of a window, and one of keys where there is."""
    x, mask = x if isinstance(x, list) else (x, None)
    heads, keys = l["heads"], l.get("key_heads", 0) or l["heads"]
    width, positions = x.shape[-1] // (heads + 2 * keys), x.shape[1]
    q, k, v = (p.unflatten(-1, (-1, width)).transpose(1, 2) for p in x.split([heads * width, keys * width, keys * width], -1))
    distance = torch.arange(positions)[:, None] - torch.arange(positions)[None, :]
    side = l.get("window", 0) or positions
    seen = (distance < side) & (distance > (-1 if l.get("causal", 0) else -side))
    if mask is not None:
        seen = seen & mask[:, None, None].bool()
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    return y.transpose(1, 2).flatten(2)


def rotary(l, x, _):
    """Llama's: halves of a head are the parts of pairs."""
    heads, width = l["heads"], l["width"]
    angles = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * float(l.get("base", 10000)) ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    cos, sin = torch.cat([angles.cos()] * 2, -1)[:, None], torch.cat([angles.sin()] * 2, -1)[:, None]
    turned = x[..., :heads * width].unflatten(-1, (heads, width))
    half = torch.cat([-turned[..., width // 2:], turned[..., :width // 2]], -1)
    return torch.cat([(turned * cos + half * sin).flatten(2), x[..., heads * width:]], -1)


# What each kind of layer computes, by its settings l, its input x, a list of these where it takes
# several, and w, its weight and bias.
APPLY = {
    "conv2d": conv2d,
    "dense": lambda l, x, w: F.linear(x, *w),
    "relu": lambda l, x, w: F.relu(x),
    "maxpool": lambda l, x, w: F.max_pool2d(x, l["size"], l.get("stride", l["size"]), l.get("pad", 0)),
    "avgpool": lambda l, x, w: F.avg_pool2d(x, l["size"], l.get("stride", l["size"]), l.get("pad", 0)),
    "flatten": lambda l, x, w: x.flatten(1),
    "tanh": lambda l, x, w: F.tanh(x),
    "sigmoid": lambda l, x, w: F.sigmoid(x),
    "gelu": lambda l, x, w: F.gelu(x),
    "gelu_tanh": lambda l, x, w: F.gelu(x, approximate="tanh"),
    "silu": lambda l, x, w: F.silu(x),
    "leaky_relu": lambda l, x, w: F.leaky_relu(x, l["slope"]),
    "batchnorm": lambda l, x, w: F.batch_norm(x, w[2], w[3], w[0], w[1], TRAINING[0], l.get("momentum", 0.1), l.get("eps", 1e-5)),
    "dropout": dropout,
    "globalavgpool": lambda l, x, w: F.adaptive_avg_pool2d(x, 1),
    "embedding": lambda l, x, w: F.embedding(x, w[0]),
    "positions": lambda l, x, w: x + w[0],
    "class_token": lambda l, x, w: torch.cat([w[0].expand(len(x), 1, -1), x], 1),
    "select": lambda l, x, w: x[:, l.get("position", 0)][:, None],
    "add": lambda l, x, w: sum(x[1:], x[0]),
    "multiply": lambda l, x, w: x[0] * x[1],
    "layernorm": lambda l, x, w: F.layer_norm(x, x.shape[-1:], *w),
    "rmsnorm": lambda l, x, w: F.rms_norm(x, x.shape[-1:], w[0], 1e-5),
    "attention": attention,
    "rotary": rotary,
    "mask": lambda l, x, w: (x != l["token"]).long(),
    "segments": lambda l, x, w: ((x == l["token"]).long().cumsum(1) - (x == l["token"]).long() == 1).long(),
    "pixels": lambda l, x, w: x.flatten(2).transpose(1, 2) if x.dim() == 4 else x.transpose(1, 2)[..., None],
    "concat": lambda l, x, w: torch.cat(x, 1),
}
TRAINING = [False]  # whether a batch normalisation is by the batch, and changes its running statistics
PREFIX = {"conv2d": "conv", "embedding": "embed", "layernorm": "ln", "rmsnorm": "rms", "attention": "attn", "dense": "fc", "batchnorm": "bn", "dropout": "drop", "maxpool": "pool", "avgpool": "pool", "globalavgpool": "pool"}


def named(layers):
    """Each layer with its name."""
    count = {}
    for layer in layers:
        prefix = PREFIX.get(layer["kind"], layer["kind"])
        count[prefix] = count.get(prefix, 0) + 1
        yield layer, "%s%d" % (prefix, count[prefix])


def inputs(layer, values):
    """What a layer reads, of the values so far by name."""
    x = [values[name] for name in layer.get("input", [list(values)[-1]])]
    return x if len(x) > 1 else x[0]


def apply(layer, name, x, params):
    if "weights_of" in layer:
        return APPLY[layer["kind"]](layer, x, [params[layer["weights_of"]]])
    own = [params[k] for k in (name + "." + of for of in STATE) if k in params]
    return APPLY[layer["kind"]](layer, x, own)


def parameters(draw, layers, sample):
    """Weights by state_dict key; a filter of zeros makes exact zeros and ties."""
    params, values = {}, {"input": sample}
    for layer, name in named(layers):
        x, w, b = inputs(layer, values), None, None
        if layer["kind"] == "conv2d":
            k = layer["kernel"]
            w = weights(draw, layer["filters"], x.shape[1] // layer.get("groups", 1), *([k, k] if isinstance(k, int) else k))
            b = weights(draw, layer["filters"])
            if name == "conv1":
                w[1], b[1] = 0, 0
        elif layer["kind"] == "dense":
            w, b = weights(draw, layer["outputs"], x.shape[-1]), weights(draw, layer["outputs"])
        elif layer["kind"] == "embedding":
            w = weights(draw, layer["tokens"], layer["width"])
        elif layer["kind"] == "layernorm":
            w, b = weights(draw, x.shape[-1]), weights(draw, x.shape[-1])
        elif layer["kind"] == "rmsnorm":
            w = weights(draw, x.shape[-1])
        elif layer["kind"] == "class_token":
            w = weights(draw, 1, x.shape[-1])
        elif layer["kind"] == "positions":
            w = weights(draw, *x.shape[1:])
        elif layer["kind"] == "batchnorm":
            w, b = weights(draw, x.shape[1]), weights(draw, x.shape[1])
            params[name + ".running_mean"], params[name + ".running_var"] = weights(draw, x.shape[1]), 2 * weights(draw, x.shape[1]).abs()
        if w is not None and "weights_of" not in layer:
            params[name + ".weight"] = w
            if b is not None and layer.get("bias", 1):
                params[name + ".bias"] = b
        values[name] = apply(layer, name, x, params)
    return params


def drawn(name, layers):
    """Images, labels and parameters of a fixture."""
    draw = stream(name)
    if name in TOKENS:
        tokens = torch.randint(0, TOKENS[name], [BATCH, POSITIONS], generator=draw)
        labels = torch.randint(0, CLASSES, [BATCH] + ([] if {"kind": "flatten"} in layers else [POSITIONS]), generator=draw)
        return tokens, labels, parameters(draw, layers, tokens[:1])
    images = torch.randint(0, 256, [BATCH] + INPUT, dtype=torch.uint8, generator=draw)
    labels = torch.randint(0, CLASSES, [BATCH], generator=draw)
    return images, labels, parameters(draw, layers, torch.zeros([1] + INPUT, dtype=torch.float64))


def layer_case(name, layers):
    images, labels, params = drawn(name, layers)
    running = {k: v for k, v in params.items() if "running" in k}
    before = {k: coded(v) for k, v in params.items()}
    for k, p in params.items():
        p.requires_grad_(k not in running)
    TRAINING[0], values, outputs = True, {"input": images if name in TOKENS else images.to(torch.float64) / 255}, []
    for layer, key in named(layers):
        x = values[key] = apply(layer, key, inputs(layer, values), params)
        if x.requires_grad:
            x.retain_grad()
        outputs.append(x)
    labels = labels.flatten()
    TRAINING[0], loss = False, F.cross_entropy(x.reshape(len(labels), -1), labels)
    loss.backward()
    return {
        "name": name, "torch": torch.__version__, "input": list(images.shape[1:]), "batch": BATCH, "layers": layers,
        "images": coded(images, "<i4" if name in TOKENS else "u1"), "labels": labels.tolist(),
        "params": before,
        "outputs": [coded(o) for o in outputs], "output_grads": [coded(o.grad) if o.requires_grad else "" for o in outputs],
        "grads": {k: coded(v.grad) for k, v in params.items() if k not in running},
        "loss": loss.item(), "correct": int((x.argmax(-1).flatten() == labels).sum()),
        **({"running": {k: coded(v) for k, v in running.items()}, "evaluated": coded(evaluated(layers, images, params))} if running else {}),
        **({"trained": trained(name, layers, *drawn(name, layers)[:2], again(name, layers))} if name in TRAINED else {}),
    }


def again(name, layers):
    """The parameters at the beginning."""
    params = drawn(name, layers)[2]
    for k, p in params.items():
        p.requires_grad_("running" not in k)
    return params


TRAINED = {"normalised": 20, "gpt": 20, "llama": 20, "vit": 50}  # networks that are also trained, and for how many steps
RATE, MOMENTUM = 0.015625, 0.5


def trained(name, layers, images, labels, params):
    """The loss of each step on the same images."""
    TRAINING[0], losses = True, []
    optimizer = torch.optim.SGD([p for p in params.values() if p.requires_grad], lr=RATE, momentum=MOMENTUM)
    for _ in range(TRAINED[name]):
        values = {"input": images.to(torch.float64) / 255 if images.dtype == torch.uint8 else images}
        for layer, key in named(layers):
            values[key] = apply(layer, key, inputs(layer, values), params)
        loss = F.cross_entropy(values[key].flatten(0, -2), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    TRAINING[0] = False
    return losses


def evaluated(layers, images, params):
    """The output of an evaluation, which uses running statistics."""
    values = {"input": images.to(torch.float64) / 255}
    for layer, key in named(layers):
        values[key] = apply(layer, key, inputs(layer, values), params)
    return values[key]


class Network(torch.nn.Module):
    """A fixture's network, whose parameters have the names of the state_dict."""

    def __init__(self, layers, params):
        super().__init__()
        self.layers = layers
        for key, value in params.items():
            name, kind = key.split(".")
            if not hasattr(self, name):
                self.add_module(name, torch.nn.Module())
            if "running" in kind:
                getattr(self, name).register_buffer(kind, value.to(torch.float32))
            else:
                getattr(self, name).register_parameter(kind, torch.nn.Parameter(value.to(torch.float32)))

    def forward(self, x):
        values, params = {"input": x}, {**dict(self.named_parameters()), **dict(self.named_buffers())}
        for layer, name in named(self.layers):
            values[name] = apply(layer, name, inputs(layer, values), params)
        return values[name]


def export(name, layers):
    net = Network(layers, drawn(name, layers)[2])
    # As for training, so that normalisations stay by themselves.
    torch.onnx.export(net, (torch.zeros([1] + INPUT, dtype=torch.float32),), name + ".onnx", opset_version=20, dynamo=False,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False)


def optimizer_of(spec, params):
    decay = spec.get("weight_decay", 0)
    if spec["kind"] == "sgd":
        return torch.optim.SGD(params, lr=spec["lr"], momentum=spec.get("momentum", 0), weight_decay=decay, nesterov=bool(spec.get("nesterov", 0)))
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[spec["kind"]]
    if "decay_dims" in spec:  # the groups of nanoGPT's configure_optimizers
        params = [{"params": [p for p in params if p.dim() >= spec["decay_dims"]], "weight_decay": decay},
                  {"params": [p for p in params if p.dim() < spec["decay_dims"]], "weight_decay": 0.0}]
    return kind(params, lr=spec["lr"], betas=(spec["beta1"], spec["beta2"]), eps=spec["eps"], weight_decay=decay)


def get_lr(it, learning_rate, warmup_iters, lr_decay_iters, min_lr):
    """The function of this name of nanoGPT's train.py (Karpathy, MIT licence)."""
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    if it > lr_decay_iters:
        return min_lr
    decay_ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
    return min_lr + coeff * (learning_rate - min_lr)


def rates_of(spec, steps):
    """The rate of each step: of the schedule, else one that changes from step to step."""
    if "schedule" not in spec:
        return [spec["lr"] / (1 + step % 2) for step in range(steps)]
    kind, *settings = spec["schedule"].split()
    s = dict(word.split("=") for word in settings)
    per_step = spec["schedule"].count("steps") > 0
    periods = {k: int(v.rstrip("epochst")) for k, v in s.items() if k in ("every", "over", "warmup")}
    if kind == "cosine_to":
        return [get_lr(step, spec["lr"], periods["warmup"], periods["warmup"] + periods["over"], float(s["min"])) for step in range(steps)]
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=spec["lr"])
    lr = torch.optim.lr_scheduler
    scheduler = {
        "constant": lambda: lr.ConstantLR(opt, factor=1),
        "step": lambda: lr.StepLR(opt, periods["every"], gamma=float(s["gamma"])),
        "multistep": lambda: lr.MultiStepLR(opt, [int(n) for n in s["milestones"].rstrip("epochst").split("/")], gamma=float(s["gamma"])),
        "cosine": lambda: lr.CosineAnnealingLR(opt, periods["over"], eta_min=float(s["min"])),
    }[kind]()
    if "warmup" in periods:
        warmup = lr.LinearLR(opt, total_iters=periods["warmup"], **({"start_factor": float(s["from"])} if "from" in s else {}))
        scheduler = lr.SequentialLR(opt, [warmup, scheduler], milestones=[periods["warmup"]])
    rates = []
    for step in range(steps):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        if per_step or step % STEPS_PER_EPOCH == STEPS_PER_EPOCH - 1:
            scheduler.step()
    return rates


def loss_of(spec, z, labels):
    if spec.get("loss") == "mse":
        return F.mse_loss(z, F.one_hot(labels, OPT_CLASSES).to(z.dtype))
    return F.cross_entropy(z, labels, label_smoothing=spec.get("label_smoothing", 0))


def optimizer_case(name, spec):
    draw = stream(name)
    images = torch.randint(0, 256, [SAMPLES, FEATURES], dtype=torch.uint8, generator=draw)
    labels = torch.randint(0, OPT_CLASSES, [SAMPLES], generator=draw)
    w, b = weights(draw, OPT_CLASSES, FEATURES).requires_grad_(), weights(draw, OPT_CLASSES).requires_grad_()
    start = {"fc1.weight": coded(w), "fc1.bias": coded(b)}
    opt, rates = optimizer_of(spec, [w, b]), rates_of(spec, spec.get("steps", STEPS))
    after, norms, losses = [], [], []
    for step, rate in enumerate(rates):
        index = [(BATCH * step + i) % SAMPLES for i in range(BATCH)]
        for group in opt.param_groups:
            group["lr"] = rate
        opt.zero_grad()
        loss = loss_of(spec, F.linear(images[index].to(torch.float64) / 255, w, b), labels[index])
        loss.backward()
        if "clip_norm" in spec:
            norms.append(torch.nn.utils.clip_grad_norm_([w, b], spec["clip_norm"]).item())
        opt.step()
        losses.append(loss.item())
        after.append({"fc1.weight": coded(w), "fc1.bias": coded(b)})
    return {"name": name, "torch": torch.__version__, "optimizer": spec, "batch": BATCH, "features": FEATURES, "classes": OPT_CLASSES, "samples": SAMPLES,
            "images": coded(images, "u1"), "labels": labels.tolist(), "params": start, "rates": rates,
            "loss": losses, "norms": norms, "after": after}


def main(names):
    torch.set_default_dtype(torch.float64)
    unknown = set(names) - set(LAYERS) - set(OPTIMIZERS)
    if unknown:
        sys.exit("no fixture is named %s; there are %s" % (", ".join(unknown), ", ".join([*LAYERS, *OPTIMIZERS])))
    kept = {}
    if names:
        with open(FILE) as f:
            kept = {c["name"]: c for cases in json.load(f).values() for c in cases if c["name"] not in names}

    def cases(make, specs):
        return [kept.get(name) or make(name, spec) for name, spec in specs.items()]

    fixtures = {"layers": cases(layer_case, LAYERS), "optimizers": cases(optimizer_case, OPTIMIZERS)}
    for name in EXPORTED:
        if not names or name in names:
            export(name, LAYERS[name])
    with open(FILE, "w") as f:
        json.dump(fixtures, f, indent=1)
        f.write("\n")


main(sys.argv[1:])
