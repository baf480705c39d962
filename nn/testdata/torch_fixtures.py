#!/usr/bin/python3
"""Writes torch_fixtures.json, what PyTorch computes for the tests of package nn.

Made with PyTorch 1.13.1 (Debian's python3-torch, CPU, which calls itself
1.13.0a0), numpy 1.24, seed 20231, float64:

    cd nn/testdata && /usr/bin/python3 torch_fixtures.py

Weights are float32 values, so that a float32 run starts from the same numbers.
Extents are pairwise different primes: batch 3, channels 2, filters 5, kernel 7,
height 11, width 13, classes 17. Arrays are little-endian in base64.
"""
import base64
import json

import numpy as np
import torch
import torch.nn.functional as F

SEED = 20231
BATCH, INPUT, CLASSES = 3, [2, 11, 13], 17
FIRST = {"kind": "conv2d", "filters": 5, "kernel": 7}
FIRST_SMALL = {"kind": "conv2d", "filters": 5, "kernel": 7, "stride": 2}
HEAD = [{"kind": "flatten"}, {"kind": "dense", "outputs": CLASSES}]

LAYERS = {
    "conv2d": [FIRST, {"kind": "conv2d", "filters": 19, "kernel": 3, "pad": 1, "stride": 2},
               {"kind": "conv2d", "filters": 7, "kernel": 2, "bias": 0}] + HEAD,
    "dense": [FIRST_SMALL, {"kind": "flatten"}, {"kind": "dense", "outputs": 23}, {"kind": "dense", "outputs": CLASSES, "bias": 0}],
    "relu": [FIRST_SMALL, {"kind": "relu"}] + HEAD,
    "maxpool": [FIRST, {"kind": "maxpool", "size": 3, "stride": 2}, {"kind": "maxpool", "size": 2}] + HEAD,
    "avgpool": [FIRST, {"kind": "avgpool", "size": 3, "stride": 2}, {"kind": "avgpool", "size": 2}] + HEAD,
    "flatten": [FIRST_SMALL] + HEAD,
}

OPTIMIZERS = [
    {"kind": "sgd", "lr": 0.5},
    {"kind": "sgd", "lr": 0.25, "momentum": 0.9},
    {"kind": "sgd", "lr": 0.25, "momentum": 0.875, "weight_decay": 0.03125},
    {"kind": "sgd", "lr": 0.25, "momentum": 0.75, "weight_decay": 0.0625, "nesterov": 1},
    {"kind": "adam", "lr": 0.125, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
    {"kind": "adam", "lr": 0.0625, "beta1": 0.75, "beta2": 0.875, "eps": 0.0078125, "weight_decay": 0.03125},
]
STEPS, SAMPLES, FEATURES, OPT_CLASSES = 5, 11, 7, 5


def coded(values, dtype="<f8"):
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode()


def weights(*shape):
    return (torch.rand(*shape) - 0.5).to(torch.float32).to(torch.float64)


def parameters(layers):
    """Weights by state_dict key; a filter of zeros makes exact zeros and ties."""
    params, shape, count = {}, [1] + INPUT, {"conv": 0, "fc": 0}
    x = torch.zeros(shape, dtype=torch.float64)
    for layer in layers:
        if layer["kind"] == "conv2d":
            count["conv"] += 1
            key = "conv%d" % count["conv"]
            w = weights(layer["filters"], x.shape[1], layer["kernel"], layer["kernel"])
            b = weights(layer["filters"])
            if count["conv"] == 1:
                w[1], b[1] = 0, 0
        elif layer["kind"] == "dense":
            count["fc"] += 1
            key = "fc%d" % count["fc"]
            w, b = weights(layer["outputs"], x.shape[1]), weights(layer["outputs"])
        if layer["kind"] in ("conv2d", "dense"):
            params[key + ".weight"] = w
            if layer.get("bias", 1):
                params[key + ".bias"] = b
        x = apply(layer, x, params, key)
    return params


def apply(layer, x, params, key):
    kind, stride = layer["kind"], layer.get("stride")
    if kind == "conv2d":
        return F.conv2d(x, params[key + ".weight"], params.get(key + ".bias"), stride or 1, layer.get("pad", 0))
    if kind == "dense":
        return F.linear(x, params[key + ".weight"], params.get(key + ".bias"))
    if kind == "relu":
        return F.relu(x)
    if kind == "maxpool":
        return F.max_pool2d(x, layer["size"], stride or layer["size"])
    if kind == "avgpool":
        return F.avg_pool2d(x, layer["size"], stride or layer["size"])
    return x.flatten(1)


def layer_case(name, layers):
    images = torch.randint(0, 256, [BATCH] + INPUT, dtype=torch.uint8)
    labels = torch.randint(0, CLASSES, [BATCH])
    params = parameters(layers)
    for p in params.values():
        p.requires_grad_()
    x, outputs, count = images.to(torch.float64) / 255, [], {"conv": 0, "fc": 0}
    for layer in layers:
        prefix = {"conv2d": "conv", "dense": "fc"}.get(layer["kind"])
        key = None
        if prefix:
            count[prefix] += 1
            key = "%s%d" % (prefix, count[prefix])
        x = apply(layer, x, params, key)
        x.retain_grad()
        outputs.append(x)
    loss = F.cross_entropy(x, labels)
    loss.backward()
    return {
        "name": name, "input": INPUT, "batch": BATCH, "layers": layers,
        "images": coded(images, "u1"), "labels": labels.tolist(),
        "params": {k: coded(v) for k, v in params.items()},
        "outputs": [coded(o) for o in outputs], "output_grads": [coded(o.grad) for o in outputs],
        "grads": {k: coded(v.grad) for k, v in params.items()},
        "loss": loss.item(), "correct": int((x.argmax(1) == labels).sum()),
    }


def optimizer_case(spec):
    images = torch.randint(0, 256, [SAMPLES, FEATURES], dtype=torch.uint8)
    labels = torch.randint(0, OPT_CLASSES, [SAMPLES])
    w, b = weights(OPT_CLASSES, FEATURES).requires_grad_(), weights(OPT_CLASSES).requires_grad_()
    start = {"fc1.weight": coded(w), "fc1.bias": coded(b)}
    if spec["kind"] == "sgd":
        opt = torch.optim.SGD([w, b], lr=spec["lr"], momentum=spec.get("momentum", 0),
                              weight_decay=spec.get("weight_decay", 0), nesterov=bool(spec.get("nesterov", 0)))
    else:
        opt = torch.optim.Adam([w, b], lr=spec["lr"], betas=(spec["beta1"], spec["beta2"]), eps=spec["eps"],
                               weight_decay=spec.get("weight_decay", 0))
    after, rates, losses = [], [], []
    for step in range(STEPS):
        index = [(BATCH * step + i) % SAMPLES for i in range(BATCH)]
        rates.append(spec["lr"] / (1 + step % 2))  # the rate changes from step to step
        for group in opt.param_groups:
            group["lr"] = rates[-1]
        opt.zero_grad()
        loss = F.cross_entropy(F.linear(images[index].to(torch.float64) / 255, w, b), labels[index])
        loss.backward()
        opt.step()
        losses.append(loss.item())
        after.append({"fc1.weight": coded(w), "fc1.bias": coded(b)})
    return {"optimizer": spec, "batch": BATCH, "features": FEATURES, "classes": OPT_CLASSES, "samples": SAMPLES,
            "images": coded(images, "u1"), "labels": labels.tolist(), "params": start, "rates": rates,
            "loss": losses, "after": after}


def main():
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.float64)
    fixtures = {
        "torch": torch.__version__, "seed": SEED,
        "layers": [layer_case(name, layers) for name, layers in LAYERS.items()],
        "optimizers": [optimizer_case(spec) for spec in OPTIMIZERS],
    }
    with open("torch_fixtures.json", "w") as f:
        json.dump(fixtures, f, indent=1)
        f.write("\n")


main()
