"""PyTorch's side of worker.py, eager and by torch.compile.

What a step costs is kept to what PyTorch itself needs: samples are float tensors in the wanted memory
format, or tokens, before the clock starts, and an epoch takes its batches out of them by their indices. dahl
converts its pixels from bytes inside the step. Both read the loss of every training step: on a CPU at
once, on a GPU, where that would stop the device, after the last step.

The device is "cpu" or "cuda"; compile is "" for eager, else the mode of torch.compile. On a GPU the
samples lie in its memory before the clock starts, and the clock stops when the device has finished. There
cuDNN tries its algorithms for each shape, and the optimiser's step is fused, as Adam's is on a CPU: both of
which PyTorch does only when asked.
"""

import itertools
import re

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from worker import IN_TURN, window

FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def windowed(make, size, outside):
    """A layer of windows, made from their numbers. Pads that differ from side to side are put around its input before."""
    def build(settings, inputs):
        rows, columns, (top, left, bottom, right) = window(settings, size)
        even = top == bottom and left == right
        layer = make(settings, inputs, kernel_size=(rows[0], columns[0]), stride=(rows[1], columns[1]),
                     dilation=(rows[2], columns[2]), padding=(top, left) if even else 0)
        if not even:
            layer.register_forward_pre_hook(lambda _, x: (F.pad(x[0], (left, right, top, bottom), value=outside),))
        return layer
    return build


def conv2d(settings, inputs, **windows):
    return nn.Conv2d(inputs[0][0], settings["Filters"], groups=settings["Groups"] or 1, bias=not settings["NoBias"], **windows)


def maxpool(settings, inputs, **windows):
    return nn.MaxPool2d(**windows)


def avgpool(settings, inputs, dilation, **windows):
    return nn.AvgPool2d(**windows)


class Add(nn.Module):
    def forward(self, first, *others):
        return sum(others, first)


class Attention(nn.Module):
    """Queries, keys and values of all heads lie behind each other; a position sees a window of positions, and no key with a mask of 0."""

    def __init__(self, s):
        super().__init__()
        self.heads, self.keys, self.causal, self.window = s["Heads"], s["KeyHeads"] or s["Heads"], s["Causal"], s["Window"]

    def forward(self, x, mask=None):
        width = x.shape[-1] // (self.heads + 2 * self.keys)
        parts = x.split([self.heads * width, self.keys * width, self.keys * width], -1)
        q, k, v = (p.unflatten(-1, (-1, width)).transpose(1, 2) for p in parts)
        at = torch.arange(x.shape[1], device=x.device)
        distance, side = at[:, None] - at[None, :], self.window or x.shape[1]
        simple = not self.window and mask is None  # without an array of what is seen, PyTorch takes its faster kernels
        seen = None if simple else (distance < side) & (distance > (-1 if self.causal else -side))
        if mask is not None:
            seen = seen & (mask[:, None, None] > 0)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=simple and self.causal, enable_gqa=self.keys != self.heads)
        return y.transpose(1, 2).flatten(2)


class Rotary(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.width, self.base = s["Heads"], s["Width"], s["Base"] or 10000.0

    def forward(self, x):
        half = torch.arange(0, self.width, 2, dtype=torch.float64) / self.width
        angles = torch.arange(x.shape[1], dtype=torch.float64)[:, None] * self.base ** -half
        cos, sin = (torch.cat([a, a], -1)[:, None].to(x) for a in (angles.cos(), angles.sin()))
        turned = x[..., :self.heads * self.width].unflatten(-1, (self.heads, self.width))
        other = torch.cat([-turned[..., self.width // 2:], turned[..., :self.width // 2]], -1)
        return torch.cat([(turned * cos + other * sin).flatten(2), x[..., self.heads * self.width:]], -1)


class Positions(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))

    def forward(self, x):
        return x + self.weight


class ClassToken(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))

    def forward(self, x):
        return torch.cat([self.weight.expand(len(x), 1, -1), x], 1)


class Select(nn.Module):
    def __init__(self, position):
        super().__init__()
        self.position = position

    def forward(self, x):
        return x[:, self.position, None]


class Pixels(nn.Module):
    def forward(self, x):
        return x.flatten(2).transpose(1, 2) if x.dim() == 4 else x.transpose(1, 2).unsqueeze(-1)


class Marks(nn.Module):
    """1 where a token is not the given one, or behind the only one of it."""

    def __init__(self, token, behind):
        super().__init__()
        self.token, self.behind = token, behind

    def forward(self, tokens):
        at = (tokens == self.token).long()
        return (at.cumsum(1) - at == 1).long() if self.behind else 1 - at


class Multiply(nn.Module):
    def forward(self, first, second):
        return first * second


class Concat(nn.Module):
    def forward(self, *inputs):
        return torch.cat(inputs, 1)


# How each kind of layer is made, from its settings and the shapes of what it reads.
LAYERS = {
    "conv2d": windowed(conv2d, "Kernel", 0.0),
    "batchnorm": lambda s, inputs: nn.BatchNorm2d(inputs[0][0], eps=s["Eps"] or 1e-5, momentum=s["Momentum"] or 0.1),
    "dense": lambda s, inputs: nn.Linear(inputs[0][-1], s["Outputs"], bias=not s["NoBias"]),
    "relu": lambda s, inputs: nn.ReLU(),
    "maxpool": windowed(maxpool, "Size", -float("inf")),
    "avgpool": windowed(avgpool, "Size", 0.0),
    "flatten": lambda s, inputs: nn.Flatten(),
    "tanh": lambda s, inputs: nn.Tanh(),
    "sigmoid": lambda s, inputs: nn.Sigmoid(),
    "gelu": lambda s, inputs: nn.GELU(),
    "gelu_tanh": lambda s, inputs: nn.GELU(approximate="tanh"),
    "silu": lambda s, inputs: nn.SiLU(),
    "leaky_relu": lambda s, inputs: nn.LeakyReLU(s["Setting"]),
    "globalavgpool": lambda s, inputs: nn.AdaptiveAvgPool2d(1),
    "add": lambda s, inputs: Add(),
    "embedding": lambda s, inputs: nn.Embedding(s["Tokens"], s["Width"]),
    "positions": lambda s, inputs: Positions(inputs[0]),
    "class_token": lambda s, inputs: ClassToken(inputs[0][-1]),
    "select": lambda s, inputs: Select(s["Position"]),
    "layernorm": lambda s, inputs: nn.LayerNorm(inputs[0][-1], eps=s["Eps"] or 1e-5, bias=not s["NoBias"]),
    "rmsnorm": lambda s, inputs: nn.RMSNorm(inputs[0][-1], eps=s["Eps"] or 1e-5),
    "attention": lambda s, inputs: Attention(s),
    "rotary": lambda s, inputs: Rotary(s),
    "pixels": lambda s, inputs: Pixels(),
    "mask": lambda s, inputs: Marks(s["Token"], False),
    "segments": lambda s, inputs: Marks(s["Token"], True),
    "multiply": lambda s, inputs: Multiply(),
    "concat": lambda s, inputs: Concat(),
}


class Layers(nn.Sequential):
    """A network with branches: each layer reads the outputs of earlier ones, by their indices; -1 is the input."""

    def forward(self, x):
        values = []
        for layer, inputs in zip(self, self.inputs):
            values.append(layer(*(x if i < 0 else values[i] for i in inputs)))
        return values[-1]


def module_name(name):
    """A layer's name as PyTorch takes it; points would name modules within modules."""
    return name.replace(".", "/")


def state_name(name):
    """PyTorch's name of a parameter of dahl's name."""
    layer, _, key = name.rpartition(".")
    return f"{module_name(layer)}.{key}"


def build(layers):
    """A module whose layers have dahl's names, so that its state has dahl's keys."""
    for layer in layers:
        if layer["kind"] not in LAYERS:
            raise ValueError(f"{layer['name']}: layer kind {layer['kind']} has no PyTorch twin here")
    inputs = [layer["inputs"] for layer in layers]
    chain = inputs == [[i - 1] for i in range(len(layers))]
    model = nn.Sequential() if chain else Layers()
    model.inputs = inputs
    for layer in layers:
        module = LAYERS[layer["kind"]](layer["settings"], layer["in"])
        for key, name in layer["shared"].items():
            setattr(module, key, model.get_parameter(state_name(name)))
        model.add_module(module_name(layer["name"]), module)
    readers = list(itertools.chain(*inputs))
    for layer, read in zip(model, inputs):
        if isinstance(layer, nn.ReLU) and read[0] >= 0 and readers.count(read[0]) == 1:
            layer.inplace = True
    return model


def optimizer_of(spec, parameters, fused):
    """PyTorch's optimiser of the same name and numbers."""
    s = spec["settings"]
    if spec["kind"] == "sgd":
        return torch.optim.SGD(parameters, lr=s["LearningRate"], momentum=s["Momentum"], weight_decay=s["WeightDecay"], nesterov=s["Nesterov"], **fused)
    kind, parameters, dims = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[spec["kind"]], list(parameters), s["DecayDims"]
    if dims:
        few = [p for p in parameters if p.dim() < dims]
        parameters = [{"params": [p for p in parameters if p.dim() >= dims]}] + [{"params": few, "weight_decay": 0.0}] * bool(few)
    return kind(parameters, lr=s["LearningRate"], betas=(s["Beta1"], s["Beta2"]), eps=s["Eps"], weight_decay=s["WeightDecay"], **fused)


def loss_of(spec, classes):
    if spec["name"] == "mse":
        return lambda z, y: F.mse_loss(z, F.one_hot(y, classes).to(z.dtype))
    return lambda z, y: F.cross_entropy(z.flatten(0, -2), y.flatten(), label_smoothing=spec["label_smoothing"])


class Network:
    """A network, its optimiser and its samples, in one memory format."""

    def __init__(self, request):
        torch.set_num_threads(request["threads"])
        self.device = torch.device(request["device"])
        self.input = request["input"]
        self.form, self.dtype, self.batch = FORMATS[request["format"]], getattr(torch, request["dtype"]), request["batch"]
        allow_tf32(request["tf32"])
        torch.backends.cudnn.benchmark = self.device.type == "cuda"
        self.model = build(request["layers"]).to(device=self.device, dtype=self.dtype, memory_format=self.form)
        weights = np.load(request["weights"])
        self.initial = {state_name(name): torch.from_numpy(weights[name]).to(self.device) for name in weights.files}
        for layer in request["layers"]:
            for key, name in layer["shared"].items():
                self.initial[state_name(f"{layer['name']}.{key}")] = self.initial[state_name(name)]
        # The compiled module shares its parameters with the one it was made of. Batches of one size
        # only: PyTorch would take the second size it meets for a sign that sizes change.
        compiled = request["compile"]
        self.call = torch.compile(self.model, mode=compiled, dynamic=False) if compiled else self.model
        fused = {"fused": True} if fuses(request["optimizer"]["kind"], self.device.type) else {}
        self.optimizer = optimizer_of(request["optimizer"], self.model.parameters(), fused)
        self.loss, self.clip = loss_of(request["loss"], request["classes"]), request["clip_norm"]
        self.read(np.load(request["data"]), request["divisor"])
        self.frozen, self.made = None, None
        self.reset()

    def read(self, data, divisor):
        def split(prefix):
            samples, labels = (torch.from_numpy(data[prefix + name]) for name in ("samples", "labels"))
            samples = samples.to(self.dtype) / divisor if divisor else samples.long()
            return self.formed(samples.reshape(len(labels), *self.input).to(self.device)), labels.long().to(self.device)
        self.samples, self.labels = split("")
        self.test_samples, self.test_labels = split("test_") if "test_samples" in data else (None, None)
        self.order = torch.from_numpy(data["order"].astype(np.int64)).to(self.device)

    def formed(self, samples):
        return samples.contiguous(memory_format=self.form) if samples.dim() == 4 else samples.contiguous()

    def reset(self):
        self.model.load_state_dict(self.initial)  # copies in place, so the memory format stays
        self.optimizer.state.clear()

    def finish(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def in_turn(self, steps):
        """Ready batches of the first samples, as they lie."""
        if self.made is None:
            ends = range(self.batch, max(self.batch, min(IN_TURN, len(self.labels))) + 1, self.batch)
            self.made = [(self.formed(self.samples[i - self.batch:i].clone()), self.labels[i - self.batch:i].clone()) for i in ends]
        return itertools.islice(itertools.cycle(self.made), steps)

    def taken(self, indices):
        """Batches of samples that are taken out of all; of no indices none."""
        for index in indices.split(self.batch) if len(indices) else ():
            yield self.formed(self.samples[index]), self.labels[index]

    def train(self, batches, rates=itertools.repeat(None)):
        self.model.train()
        losses, gpu = [], self.device.type == "cuda"
        for (x, y), rate in zip(batches, rates):
            if rate is not None:
                for group in self.optimizer.param_groups:
                    group["lr"] = rate
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(self.call(x), y)
            loss.backward()
            if self.clip:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            losses.append(loss.detach().clone() if gpu else loss.item())
        return torch.stack(losses).tolist() if gpu and losses else losses

    def forward(self, mode):
        self.model.eval()
        if mode != "frozen":
            return self.call
        if self.frozen is None:
            self.frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(self.model, next(self.in_turn(1))[0])))
            for x, _ in self.in_turn(3):  # the first calls still optimise
                self.frozen(x)
        return self.frozen

    def losses(self, mode, steps):
        if mode == "train":
            return self.train(self.in_turn(steps))
        with torch.inference_mode():
            forward = self.forward(mode)
            return [self.loss(forward(x), y).item() for x, y in self.in_turn(steps)]

    def steps(self, mode, steps):
        if mode == "train":
            self.train(self.in_turn(steps))
            return
        with torch.inference_mode():
            forward = self.forward(mode)
            for x, _ in self.in_turn(steps):
                forward(x)

    def ready(self, rates):
        order = self.order[0]
        losses = self.train(self.taken(order[:len(rates) * self.batch]), rates)
        self.train(self.taken(order[len(order) // self.batch * self.batch:]))  # the short last batch
        if self.test_samples is not None:
            self.test()
        return losses

    def epoch(self, epoch, rates):
        return self.train(self.taken(self.order[epoch]), rates)

    def test(self):
        loss, correct = 0.0, 0
        with torch.inference_mode():
            forward = self.forward("infer")
            for x, y in zip(self.test_samples.split(self.batch), self.test_labels.split(self.batch)):
                z = forward(x)
                loss += self.loss(z, y).item() * len(y)
                correct += int((z.argmax(-1) == y).sum())
        return loss / len(self.test_labels), correct


def fuses(kind, device):
    """Whether this PyTorch has the optimiser's step in one: on a GPU from 2.3 on, and Adam's on a CPU from 2.4 on."""
    return torch.__version__ >= (2, 3) if device == "cuda" else kind != "sgd" and torch.__version__ >= (2, 4)


def allow_tf32(allow):
    """PyTorch rounds convolutions to TF32 by default and matrix products not; here both or neither."""
    torch.backends.cuda.matmul.allow_tf32 = allow
    torch.backends.cudnn.allow_tf32 = allow


def forget():
    """What was compiled for networks before counts towards a limit, beyond which PyTorch would go on eagerly without a word."""
    if hasattr(torch, "compiler"):
        torch.compiler.reset()


def describe():
    config = torch.__config__.show()
    onednn = re.search(r"MKL-DNN v(\S+)", config)
    versions = {"program": f"PyTorch {torch.__version__}", "library": f"oneDNN {onednn.group(1)}" if onednn else "",
                "capability": re.search(r"CPU capability usage: (\S+)", config).group(1), "config": config}
    if torch.cuda.is_available():
        versions["gpu"] = f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    return versions
