"""PyTorch's side of `dahl-bench peers`: one process per setting of the environment.

Reads one JSON request per line and answers each with one JSON line, {"error": ...} where it fails:

    {"do": "describe"}                      versions of PyTorch and oneDNN, CPU capability
    {"do": "open", "threads", "layers", "batch", "divisor", "optimizer", "weights", "data", "channels_last",
     "device", "tf32", "compile", "first"}  builds the network; one per memory format is kept until the next "first"
    {"do": "losses", "mode", "channels_last", "steps"}  the loss of every step from the first weights
    {"do": "time", "mode", "channels_last", "steps", "warmup"}  the seconds of the steps, after some more

The mode is "train", or for inference "eager" or "frozen" (TorchScript). Timed training begins from
the first weights, so that no repetition meets the denormal numbers of a network that has learnt all.

What a step costs is kept to what PyTorch itself needs: its batches are float32 tensors in the
wanted memory format before the clock starts, the collector is off. dahl converts its images from
bytes inside the step. Both read the loss of every training step: on a CPU at once, on a GPU, where
that would stop the device, after the last step.

The device is "cpu" or "cuda"; compile is "" for eager, else the mode of torch.compile. On a GPU the
batches lie in its memory before the clock starts, and the clock stops when the device has finished. There
cuDNN tries its algorithms for each shape, and the optimiser's step is fused, both of which PyTorch does
only when asked.
"""

import collections
import gc
import inspect
import json
import re
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def build_layer(layer):
    kind, settings, inputs = layer["kind"], layer["settings"], layer["in"]
    if any(any(settings.get(of, {}).values()) for of in ("Columns", "Pads")):
        raise ValueError(f"{layer['name']}: windows that differ between rows and columns have no PyTorch twin here")
    if kind == "conv2d":
        return nn.Conv2d(inputs[0], settings["Filters"], settings["Kernel"], stride=max(settings["Stride"], 1),
                         padding=settings["Pad"], dilation=max(settings["Dilation"], 1), groups=max(settings["Groups"], 1),
                         bias=not settings["NoBias"])
    if kind == "dense":
        return nn.Linear(inputs[0], settings["Outputs"], bias=not settings["NoBias"])
    if kind == "relu":
        return nn.ReLU(inplace=True)
    if kind == "maxpool":
        return nn.MaxPool2d(settings["Size"], settings["Stride"] or None, settings["Pad"])
    if kind == "avgpool":
        return nn.AvgPool2d(settings["Size"], settings["Stride"] or None, settings["Pad"])
    if kind == "flatten":
        return nn.Flatten()
    raise ValueError(f"layer kind {kind} has no PyTorch twin here")


class Network:
    """A network, its optimiser and its batches, in one memory format."""

    def __init__(self, request):
        form = torch.channels_last if request["channels_last"] else torch.contiguous_format
        self.device = torch.device(request.get("device") or "cpu")
        self.compile = request.get("compile") or ""
        allow_tf32(request.get("tf32", False))
        torch.backends.cudnn.benchmark = self.device.type == "cuda"
        names = ((layer["name"], build_layer(layer)) for layer in request["layers"])
        self.model = nn.Sequential(collections.OrderedDict(names)).to(device=self.device, memory_format=form)
        weights = np.load(request["weights"])
        self.initial = {name: torch.from_numpy(weights[name]).to(self.device) for name in weights.files}
        self.model.load_state_dict(self.initial)
        # The compiled module shares its parameters with the one it was made of. Batches of one size
        # only: PyTorch would take the second size it meets for a sign that sizes change.
        self.call = torch.compile(self.model, mode=self.compile, dynamic=False) if self.compile else self.model
        sgd = request["optimizer"]
        fused = {"fused": True} if self.device.type == "cuda" and fuses() else {}
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=sgd["LearningRate"], momentum=sgd["Momentum"],
                                         weight_decay=sgd["WeightDecay"], nesterov=sgd["Nesterov"], **fused)
        data = np.load(request["data"])
        images = torch.from_numpy(data["images"]).to(torch.float32) / request["divisor"]
        labels = torch.from_numpy(data["labels"].astype(np.int64))
        batch = request["batch"]
        self.batches = [(images[i:i + batch].to(self.device).contiguous(memory_format=form), labels[i:i + batch].to(self.device, copy=True))
                        for i in range(0, len(labels) - batch + 1, batch)]
        self.frozen = None

    def reset(self):
        self.model.load_state_dict(self.initial)  # copies in place, so the memory format stays

    def train(self, steps):
        self.model.train()
        losses = []
        for step in range(steps):
            x, y = self.batches[step % len(self.batches)]
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.call(x), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach().clone() if self.device.type == "cuda" else loss.item())
        return torch.stack(losses).tolist() if self.device.type == "cuda" and losses else losses

    def forward(self, mode):
        self.model.eval()
        if mode == "eager":
            return self.call
        if self.frozen is None:
            traced = torch.jit.trace(self.model, self.batches[0][0])
            self.frozen = torch.jit.optimize_for_inference(torch.jit.freeze(traced))
            for x, _ in self.batches[:3]:  # the first calls still optimise
                self.frozen(x)
        return self.frozen

    def infer(self, mode, steps):
        forward = self.forward(mode)
        for step in range(steps):
            forward(self.batches[step % len(self.batches)][0])

    def losses(self, mode, steps):
        self.reset()
        if mode == "train":
            return self.train(steps)
        forward = self.forward(mode)
        batches = (self.batches[step % len(self.batches)] for step in range(steps))
        return [F.cross_entropy(forward(x), y).item() for x, y in batches]

    def seconds(self, mode, warmup, steps):
        if mode == "train":
            self.reset()
            return self.timed(self.train, warmup, steps)
        return self.timed(lambda n: self.infer(mode, n), warmup, steps)

    def timed(self, work, warmup, steps):
        gc.collect()
        gc.disable()
        try:
            work(warmup)
            self.finish()
            start = time.perf_counter()
            work(steps)
            self.finish()
            return time.perf_counter() - start
        finally:
            gc.enable()

    def finish(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def fuses():
    """Whether this PyTorch's SGD can be fused: from 2.3 on."""
    return "fused" in inspect.signature(torch.optim.SGD).parameters


def allow_tf32(allow):
    """PyTorch rounds convolutions to TF32 by default and matrix products not; here both or neither."""
    torch.backends.cuda.matmul.allow_tf32 = allow
    torch.backends.cudnn.allow_tf32 = allow


def describe():
    config = torch.__config__.show()
    onednn = re.search(r"MKL-DNN v(\S+)", config)
    gpu = {}
    if torch.cuda.is_available():
        gpu = {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())}
    return {"torch": torch.__version__, "onednn": onednn.group(1) if onednn else "none",
            "capability": re.search(r"CPU capability usage: (\S+)", config).group(1), "config": config, **gpu}


def answer(request, networks):
    do = request["do"]
    if do == "describe":
        return describe()
    key = request["channels_last"]
    if do == "open":
        torch.set_num_threads(request["threads"])
        if request.get("first"):
            networks.clear()
            if request.get("compile"):
                # What was compiled for networks before counts towards a limit, beyond which PyTorch
                # would go on eagerly without a word.
                torch.compiler.reset()
        networks[key] = Network(request)
        return {}
    network, mode = networks[key], request["mode"]
    with torch.inference_mode(mode != "train"):
        if do == "losses":
            return {"values": network.losses(mode, request["steps"])}
        if do == "time":
            return {"seconds": network.seconds(mode, request["warmup"], request["steps"])}
    raise ValueError(f"unknown request {do}")


def main():
    networks = {}
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line), networks)
        except Exception as failure:  # the caller prints it and ends
            reply = {"error": f"{type(failure).__name__}: {failure}"}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
