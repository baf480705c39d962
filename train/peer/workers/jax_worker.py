"""JAX's side of worker.py: a training step is one compiled function, which gets the buffers of the weights to write the new ones.

Samples are float arrays in the wanted memory format, or tokens, before the clock starts, and an epoch takes its
batches out of them by their indices, inside the step. The loss of every step is read at once.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from worker import IN_TURN, window

# Where the channels of images and of filters are.
FORMATS = {"contiguous": ("NCHW", "OIHW"), "channels_last": ("NHWC", "HWIO")}


class Form:
    """A memory format: conversions from PyTorch's, in which weights and images come."""

    def __init__(self, name):
        self.images, self.filters = FORMATS[name]
        self.channels = self.images.index("C")

    def weight(self, w):
        return w.transpose(["OIHW".index(d) for d in self.filters]) if w.ndim == 4 else w

    def image(self, x):
        return x.transpose(["NCHW".index(d) for d in self.images]) if x.ndim == 4 else x

    def spatial(self, rows, columns, other):
        """A number per dimension of images: two of rows and columns, and another one."""
        return tuple({"H": rows, "W": columns}.get(d, other) for d in self.images)

    def flat(self, x):
        """Features in PyTorch's order."""
        if x.ndim == 4:
            x = x.transpose([self.images.index(d) for d in "NCHW"])
        return x.reshape(len(x), -1)


def conv2d(form, s, w, x):
    rows, columns, (top, left, bottom, right) = window(s, "Kernel")
    y = lax.conv_general_dilated(x, w["weight"], (rows[1], columns[1]), ((top, bottom), (left, right)), rhs_dilation=(rows[2], columns[2]),
                                 dimension_numbers=(form.images, form.filters, form.images), feature_group_count=s["Groups"] or 1)
    return y + w["bias"].reshape((-1,) + (1,) * (3 - form.channels)) if "bias" in w else y


def batchnorm(form, s, w, x, training):
    """PyTorch's BatchNorm2d, and its running statistics after it."""
    axes = [d for d in range(4) if d != form.channels]
    along = (-1,) + (1,) * (3 - form.channels)
    mean, var, running = w["running_mean"], w["running_var"], {}
    if training:
        mean, part = x.mean(axes), s["Momentum"] or 0.1
        var, n = ((x - mean.reshape(along)) ** 2).mean(axes), x.size // x.shape[form.channels]
        running = {"running_mean": (1 - part) * w["running_mean"] + part * mean,
                   "running_var": (1 - part) * w["running_var"] + part * var * n / (n - 1)}
    scale = w["weight"] / jnp.sqrt(var + (s["Eps"] or 1e-5))
    return (x - mean.reshape(along)) * scale.reshape(along) + w["bias"].reshape(along), running


def dense(form, s, w, x):
    y = x @ w["weight"].T
    return y + w["bias"] if "bias" in w else y


def pooled(form, s, x, first, combine):
    rows, columns, (top, left, bottom, right) = window(s, "Size")
    return lax.reduce_window(x, first, combine, form.spatial(rows[0], columns[0], 1), form.spatial(rows[1], columns[1], 1),
                             form.spatial((top, bottom), (left, right), (0, 0)))


def avgpool(form, s, w, x):
    rows, columns, _ = window(s, "Size")
    return pooled(form, s, x, 0.0, lax.add) / (rows[0] * columns[0])


def rownorm(form, s, w, x, center):
    x = x - x.mean(-1, keepdims=True) if center else x
    y = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + (s["Eps"] or 1e-5)) * w["weight"]
    return y + w["bias"] if "bias" in w else y


def attention(form, s, w, x, mask=None):
    heads, keys = s["Heads"], s["KeyHeads"] or s["Heads"]
    width, positions = x.shape[-1] // (heads + 2 * keys), x.shape[1]
    q, k, v = (p.reshape(p.shape[:2] + (-1, width)) for p in jnp.split(x, [heads * width, (heads + keys) * width], -1))
    k, v = (jnp.repeat(p, heads // keys, 2) for p in (k, v))
    at = jnp.arange(positions)
    distance, side = at[:, None] - at[None, :], s["Window"] or positions
    seen = (distance < side) & (distance > (-1 if s["Causal"] else -side))
    if mask is not None:
        seen = seen & (mask[:, None, None] > 0)
    scores = jnp.where(seen, jnp.einsum("nthd,nshd->nhts", q, k) / width ** 0.5, -jnp.inf)
    return jnp.einsum("nhts,nshd->nthd", jax.nn.softmax(scores, -1), v).reshape(x.shape[:2] + (-1,))


def rotary(form, s, w, x):
    heads, width = s["Heads"], s["Width"]
    angles = jnp.arange(x.shape[1])[:, None] * (s["Base"] or 10000.0) ** (-jnp.arange(0, width, 2) / width)
    cos, sin = (jnp.concatenate([a, a], -1)[:, None].astype(x.dtype) for a in (jnp.cos(angles), jnp.sin(angles)))
    turned = x[..., :heads * width].reshape(x.shape[:2] + (heads, width))
    other = jnp.concatenate([-turned[..., width // 2:], turned[..., :width // 2]], -1)
    return jnp.concatenate([(turned * cos + other * sin).reshape(x.shape[:2] + (-1,)), x[..., heads * width:]], -1)


def pixels(form, s, w, x):
    if x.ndim == 3:
        x = x[..., None]
        return jnp.moveaxis(x, [0, 2, 1, 3], [form.images.index(d) for d in "NCHW"])
    return jnp.moveaxis(x, [form.images.index(d) for d in "NHWC"], [0, 1, 2, 3]).reshape(x.shape[0], -1, x.shape[form.channels])


def marks(tokens, token, behind):
    at = (tokens == token).astype(jnp.int32)
    return (jnp.cumsum(at, 1) - at == 1).astype(jnp.int32) if behind else 1 - at


# What each kind of layer computes, by its settings s, its parameters w and what it reads.
LAYERS = {
    "batchnorm": batchnorm,
    "conv2d": conv2d,
    "dense": dense,
    "relu": lambda form, s, w, x: jax.nn.relu(x),
    "maxpool": lambda form, s, w, x: pooled(form, s, x, -jnp.inf, lax.max),
    "avgpool": avgpool,
    "flatten": lambda form, s, w, x: form.flat(x),
    "tanh": lambda form, s, w, x: jnp.tanh(x),
    "sigmoid": lambda form, s, w, x: jax.nn.sigmoid(x),
    "gelu": lambda form, s, w, x: jax.nn.gelu(x, approximate=False),
    "gelu_tanh": lambda form, s, w, x: jax.nn.gelu(x, approximate=True),
    "silu": lambda form, s, w, x: jax.nn.silu(x),
    "leaky_relu": lambda form, s, w, x: jax.nn.leaky_relu(x, s["Setting"]),
    "globalavgpool": lambda form, s, w, x: x.mean([form.images.index("H"), form.images.index("W")], keepdims=True),
    "add": lambda form, s, w, *x: sum(x[1:], x[0]),
    "embedding": lambda form, s, w, x: w["weight"][x],
    "positions": lambda form, s, w, x: x + w["weight"],
    "class_token": lambda form, s, w, x: jnp.concatenate([jnp.broadcast_to(w["weight"], (x.shape[0], 1, x.shape[2])), x], 1),
    "select": lambda form, s, w, x: x[:, s["Position"], None],
    "layernorm": lambda form, s, w, x: rownorm(form, s, w, x, True),
    "rmsnorm": lambda form, s, w, x: rownorm(form, s, w, x, False),
    "attention": attention,
    "rotary": rotary,
    "pixels": pixels,
    "mask": lambda form, s, w, x: marks(x, s["Token"], False),
    "segments": lambda form, s, w, x: marks(x, s["Token"], True),
    "multiply": lambda form, s, w, x, y: x * y,
    "concat": lambda form, s, w, *x: jnp.concatenate(x, form.channels if x[0].ndim == 4 else 1),
}


def forward(form, layers, params, stats, x, training):
    """The last layer's outputs, and the running statistics by layer."""
    values, after = [], {}
    for layer in layers:
        name, inputs = layer["name"], [x if i < 0 else values[i] for i in layer["inputs"]]
        w = {**params.get(name, {}), **stats.get(name, {})}
        for key, of in layer["shared"].items():
            owner, _, its = of.rpartition(".")
            w[key] = params[owner][its]
        if layer["kind"] == "batchnorm":
            y, after[name] = batchnorm(form, layer["settings"], w, *inputs, training)
        else:
            y = LAYERS[layer["kind"]](form, layer["settings"], w, *inputs)
        values.append(y)
    return values[-1], after


def loss_of(spec, z, y):
    classes = z.shape[-1]
    hot = jax.nn.one_hot(y, classes, dtype=z.dtype)
    if spec["name"] == "mse":
        return jnp.mean((z - hot) ** 2)
    smoothing = spec["label_smoothing"]
    return -jnp.mean(jnp.sum((hot * (1 - smoothing) + smoothing / classes) * jax.nn.log_softmax(z), axis=-1))


def sgd(s, rate, t, p, g, state):
    """PyTorch's SGD; the state is the velocity."""
    g = g + s["WeightDecay"] * p
    if s["Momentum"]:
        state = s["Momentum"] * state + g  # from 0, so that the first is the gradient
        g = g + s["Momentum"] * state if s["Nesterov"] else state
    return p - rate * g, state


def adam(s, rate, t, p, g, state):
    """PyTorch's Adam, and AdamW where decoupled; the state is the two moments."""
    decay = s["WeightDecay"] if p.ndim >= s["DecayDims"] else 0
    if s["Decoupled"]:
        p = p * (1 - rate * decay)
    else:
        g = g + decay * p
    m, v = s["Beta1"] * state[0] + (1 - s["Beta1"]) * g, s["Beta2"] * state[1] + (1 - s["Beta2"]) * g * g
    step = m / (1 - s["Beta1"] ** t) / (jnp.sqrt(v / (1 - s["Beta2"] ** t)) + s["Eps"])
    return p - rate * step, jnp.stack([m, v])


def clipped(grads, most):
    """PyTorch's clip_grad_norm_."""
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, most / (norm + 1e-6)), grads)


class Network:
    """A network, the state of its optimiser and its samples, in one memory format."""

    def __init__(self, request):
        for layer in request["layers"]:
            if layer["kind"] not in LAYERS:
                raise ValueError(f"{layer['name']}: layer kind {layer['kind']} has no JAX twin here")
        jax.config.update("jax_enable_x64", request["dtype"] == "float64")
        self.form, self.dtype, self.batch = Form(request["format"]), jnp.dtype(request["dtype"]), request["batch"]
        weights, self.initial, self.running = np.load(request["weights"]), {}, {}
        for name in weights.files:
            layer, _, key = name.rpartition(".")
            of = self.running if key.startswith("running_") else self.initial
            if key != "num_batches_tracked":  # which says nothing where the momentum is fixed
                of.setdefault(layer, {})[key] = self.form.weight(weights[name])
        self.rate = request["optimizer"]["settings"]["LearningRate"]
        self.moments = 2 if request["optimizer"]["kind"] != "sgd" else 0
        self.read(np.load(request["data"]), request["input"], request["divisor"])
        self.compile(request)
        self.made = None
        self.reset()

    def read(self, data, input, divisor):
        def split(prefix):
            labels = data[prefix + "labels"].astype(np.int32)
            samples = data[prefix + "samples"]
            samples = (samples / divisor).astype(self.dtype) if divisor else samples
            return jnp.asarray(self.form.image(samples.reshape(len(labels), *input))), jnp.asarray(labels)
        self.samples, self.labels = split("")
        self.test_samples, self.test_labels = split("test_") if "test_samples" in data else (None, None)
        self.order = data["order"].astype(np.int32)

    def compile(self, request):
        call = functools.partial(forward, self.form, request["layers"])
        settings, update = request["optimizer"]["settings"], sgd if request["optimizer"]["kind"] == "sgd" else adam

        def loss_and_stats(params, stats, x, y):
            z, stats = call(params, stats, x, True)
            return loss_of(request["loss"], z, y), stats

        def step(params, stats, state, x, y, rate, t):
            (loss, stats), grads = jax.value_and_grad(loss_and_stats, has_aux=True)(params, stats, x, y)
            if request["clip_norm"]:
                grads = clipped(grads, request["clip_norm"])
            pairs = jax.tree.map(functools.partial(update, settings, rate, t), params, grads, state)
            params, state = jax.tree.transpose(jax.tree.structure(params), jax.tree.structure((0, 0)), pairs)
            return params, stats, state, loss

        def taken(params, stats, state, samples, labels, index, rate, t):
            return step(params, stats, state, samples[index], labels[index], rate, t)

        def inferred(params, stats, x):
            return call(params, stats, x, False)[0]

        def tested(params, stats, x, y):
            z = inferred(params, stats, x)
            return loss_of(request["loss"], z, y), jnp.sum(z.argmax(-1) == y)

        self.step, self.taken = jax.jit(step, donate_argnums=(0, 1, 2)), jax.jit(taken, donate_argnums=(0, 1, 2))
        self.call, self.tested = jax.jit(inferred), jax.jit(tested)

    def reset(self):
        self.params, self.stats = jax.tree.map(lambda w: jnp.array(w, self.dtype), (self.initial, self.running))
        shape = (lambda w: (self.moments,) + w.shape) if self.moments else (lambda w: w.shape)
        self.state = jax.tree.map(lambda w: jnp.zeros(shape(w), self.dtype), self.initial)
        self.t = 0

    def finish(self):
        jax.block_until_ready(self.params)

    def in_turn(self, steps):
        """Ready batches of the first samples, as they lie."""
        if self.made is None:
            ends = range(self.batch, max(self.batch, min(IN_TURN, len(self.labels))) + 1, self.batch)
            self.made = [(jnp.array(self.samples[i - self.batch:i]), jnp.array(self.labels[i - self.batch:i])) for i in ends]
        return itertools.islice(itertools.cycle(self.made), steps)

    def advance(self, step, rate, *batch):
        self.t += 1
        rate = self.dtype.type(self.rate if rate is None else rate)
        self.params, self.stats, self.state, loss = step(self.params, self.stats, self.state, *batch, rate, self.dtype.type(self.t))
        return float(loss)

    def indices(self, order):
        return [order[i:i + self.batch] for i in range(0, len(order), self.batch)]

    def losses(self, mode, steps):
        if mode == "train":
            return [self.advance(self.step, None, x, y) for x, y in self.in_turn(steps)]
        return [float(self.tested(self.params, self.stats, x, y)[0]) for x, y in self.in_turn(steps)]

    def steps(self, mode, steps):
        if mode == "train":
            self.losses(mode, steps)
            return
        for x, _ in self.in_turn(steps):
            jax.block_until_ready(self.call(self.params, self.stats, x))

    def train(self, order, rates):
        return [self.advance(self.taken, rate, self.samples, self.labels, index) for index, rate in zip(self.indices(order), rates)]

    def ready(self, rates):
        order = self.order[0]
        losses = self.train(order[:len(rates) * self.batch], rates)
        self.train(order[len(order) // self.batch * self.batch:], rates)  # the short last batch
        if self.test_samples is not None:
            self.test()
        return losses

    def epoch(self, epoch, rates):
        return self.train(self.order[epoch], rates)

    def test(self):
        loss, correct = 0.0, 0
        for i in range(0, len(self.test_labels), self.batch):
            x, y = self.test_samples[i:i + self.batch], self.test_labels[i:i + self.batch]
            mean, right = self.tested(self.params, self.stats, x, y)
            loss, correct = loss + float(mean) * len(y), correct + int(right)
        return loss / len(self.test_labels), correct


def forget():
    jax.clear_caches()


def describe():
    return {"program": f"JAX {jax.__version__}", "library": f"XLA of jaxlib {jax.lib.__version__}", "capability": jax.default_backend()}
