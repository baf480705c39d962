#!/usr/bin/python3
"""Trains GPTs on a text by dahl and by PyTorch, with nanoGPT's settings, from the same weights on the same windows, and writes the page README.md.

    apt-get install -y bible-kjv && bible -f gen1:1-deu34:12 > kjv.txt
    python3 bench/text/train.py --text kjv.txt [--platform here.toml] [--dahl bin/dahl] [--out bench/text] [--steps N] [NETWORK...]

The text is the first five books of the King James Version (863,164 bytes, in the public domain); a program of Debian prints it. Windows are drawn at
random from its first nine tenths as nanoGPT's get_batch draws them, and losses of a test are of windows of the rest. Tokens are bytes. Without --platform dahl
measures this machine first, for each network, by dahl calibrate. It needs PyTorch 2 and numpy. The script ends with status 1 where the means of
the losses of the last tenth of the steps, or the losses of the test, differ by more than 0.02. Another load on the machine spoils times and joules, and no loss.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parity"))
import gpt

# Steps of a training. nanoGPT's own for a processor are those of gpt-tiny.
STEPS = {"gpt-tiny": 2000, "gpt-char": 300}
TESTED, ROWS, APART = 96, 10, 0.02
PROMPT = "And God said"


def rate_of(step, steps):
    """nanoGPT's get_lr: a warm-up over a twentieth of the steps, and a cosine to a tenth of the rate at the end."""
    warm = steps // 20
    if step < warm:
        return gpt.RATE * (step + 1) / (warm + 1)
    return 0.1 * gpt.RATE + 0.45 * gpt.RATE * (1 + np.cos(np.pi * (step - warm) / (steps - warm)))


def schedule_of(steps):
    warm = steps // 20
    return "cosine_to,over=%dsteps,min=%r,warmup=%dsteps,from=%r" % (steps - warm, 0.1 * gpt.RATE, warm, 1 / (warm + 1))


def windows(text, samples, positions, rng):
    starts = rng.integers(0, len(text) - positions, samples)
    both = np.stack([text[i:i + positions + 1] for i in starts]).astype(np.int32)
    return both[:, :-1], both[:, 1:]


def torch_train(name, data, batch, steps):
    model = gpt.build(name)
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": gpt.DECAY},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=gpt.RATE, betas=gpt.BETAS, fused=True)
    tensors, losses, begin = {k: torch.from_numpy(v).long() for k, v in data.items()}, [], time.perf_counter()
    for step in range(steps):
        x, y = (tensors[k][step * batch:(step + 1) * batch] for k in ("x_train", "y_train"))
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step, steps)
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), gpt.CLIP)
        optimizer.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - begin
    with torch.inference_mode():
        said = torch.cat([model(x) for x in tensors["x_test"].split(batch)])
        return losses, F.cross_entropy(said.flatten(0, 1), tensors["y_test"].flatten()).item(), seconds


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    return done.stdout


def dahl_train(args, directory, name, batch, steps):
    """The losses, the loss of the test, what dahl compare says, and a text."""
    out, data, machine = (os.path.join(directory, f) for f in ("run", "data.npz", "here.toml"))
    if args.platform:
        machine = args.platform
    else:
        run(args.dahl, "calibrate", "--model", name, "--batch", str(batch), "--out", machine)
    run(args.dahl, "execute", "--platform", machine, "--model", name, "--data", data, "--init", os.path.join(directory, "init.npz"), "--shuffle=false", "--epochs", "1",
        "--batch", str(batch), "--schedule", schedule_of(steps), "--record", "20", "--out", out)
    with open(os.path.join(out, "steps.csv")) as f:
        losses = [float(row["loss"]) for row in csv.DictReader(f)]
    with open(os.path.join(out, "summary.json")) as f:
        tested = json.load(f)["test_loss"]
    said = run(args.dahl, "generate", out, "--prompt", " ".join(str(b) for b in PROMPT.encode()), "--tokens", "400", "--temperature", "0.8", "--seed", "1")
    text = bytes(int(token) for token in said.split()).decode(errors="replace")
    return losses, tested, json.loads(run(args.dahl, "compare", out, "--json")), text


def curve(path, name, ours, theirs):
    """Means of every fiftieth part of the steps as two lines of an SVG, over each other where losses agree."""
    part = max(1, len(ours) // 50)
    top = max(ours + theirs)

    def line(losses, style):
        points = ((10 + 580 * i / len(losses), 290 - 270 * np.mean(losses[i:i + part]) / top) for i in range(0, len(losses), part))
        return '<polyline fill="none" %s points="%s"/>' % (style, " ".join("%.1f,%.1f" % p for p in points))

    with open(path, "w") as f:
        f.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 300" font-family="sans-serif" font-size="12"><rect width="600" height="300" fill="white"/>\n')
        f.write('<path d="M10 10V290H590" fill="none" stroke="gray"/><text x="16" y="20">%.2f</text><text x="590" y="20" text-anchor="end">%s: loss of %d steps; wide: PyTorch, thin: dahl</text>\n' % (top, name, len(ours)))
        f.write(line(theirs, 'stroke="orange" stroke-width="5"') + "\n" + line(ours, 'stroke="navy" stroke-width="1.5"') + "\n</svg>\n")


def section(args, name, text):
    layers, heads, width, positions, _, batch = gpt.NETWORKS[name]
    steps, rng = args.steps or STEPS[name], np.random.default_rng(gpt.SEED)
    data, split = {}, len(text) * 9 // 10
    data["x_train"], data["y_train"] = windows(text[:split], steps * batch, positions, rng)
    data["x_test"], data["y_test"] = windows(text[split:], TESTED, positions, rng)
    with tempfile.TemporaryDirectory() as directory:
        np.savez(os.path.join(directory, "data.npz"), **data)
        np.savez(os.path.join(directory, "init.npz"), **{k: v.numpy() for k, v in gpt.build(name).state_dict().items() if k != "lm_head.weight"})
        ours, tested, compared, wrote = dahl_train(args, directory, name, batch, steps)
    theirs, their_test, seconds = torch_train(name, data, batch, steps)
    picture = name + ".svg"
    curve(os.path.join(args.out, picture), name, ours, theirs)
    part, rows = max(1, steps // ROWS), []
    for i in range(0, part * ROWS, part):
        a, b = np.mean(ours[i:i + part]), np.mean(theirs[i:i + part])
        rows.append("| %d to %d | %.4f | %.4f | %+.4f |" % (i + 1, i + part, a, b, a - b))
    apart = max(abs(a - b), abs(tested - their_test))
    figures = []
    for what, key, unit, scale in (("step", "run_step_s", "ms", 1e3), ("run", "run_s", "s", 1), ("energy of the run (%s)" % compared["joules_grounds"], "run_joules", "J", 1), ("live peak of memory", "peak_bytes", "MB", 1e-6)):
        v = compared[key]
        figures.append("| %s | %.4g %s | %.4g %s | %+.1f %% |" % (what, v["predicted"] * scale, unit, v["measured"] * scale, unit, v["error_percent"]))
    print("%s: apart %.4f, test %.4f and %.4f, PyTorch %.0f s" % (name, apart, tested, their_test, seconds), file=sys.stderr)
    return apart, """## %s

%d layers, %d heads, %d features, %d positions, batch %d, %d steps: %d tokens of a text of %d.

| steps | dahl | PyTorch | difference |
|---|--:|--:|--:|
%s
| test, %d windows | %.4f | %.4f | %+.4f |

![loss](%s)

| | predicted | measured | error |
|---|--:|--:|--:|
%s

PyTorch (eager, %d threads, fused AdamW) took %.1f s for the steps. dahl's network goes on after "%s" (temperature 0.8):

```
%s
```
""" % (name, layers, heads, width, positions, batch, steps, steps * batch * positions, len(text), "\n".join(rows), TESTED, tested, their_test, tested - their_test, picture,
       "\n".join(figures), torch.get_num_threads(), seconds, PROMPT, wrote)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True)
    parser.add_argument("--dahl", default="bin/dahl")
    parser.add_argument("--platform")
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--steps", type=int, help="default: %s" % STEPS)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help="default: all of " + ", ".join(STEPS))
    args = parser.parse_args()
    with open(args.text, "rb") as f:
        text = np.frombuffer(f.read(), np.uint8)
    os.makedirs(args.out, exist_ok=True)
    sections, worst = [], 0.0
    for name in args.networks or STEPS:
        apart, page = section(args, name, text)
        sections.append(page)
        worst = max(worst, apart)
    version = run(args.dahl, "--version").strip()
    with open(os.path.join(args.out, "README.md"), "w") as f:
        f.write("""# A public text

GPTs trained by dahl and by PyTorch on the first five books of the King James Version, from the same weights on the same windows, with nanoGPT's settings:
AdamW at 0.001 with betas 0.9 and 0.99, a decay of 0.1 of matrices, gradients clipped to a norm of 1, a warm-up over a twentieth of the steps and a
cosine to a tenth of the rate. Tokens are bytes. Losses are means over steps, in nats. [train.py](train.py) wrote this page:

    apt-get install -y bible-kjv && bible -f gen1:1-deu34:12 > kjv.txt
    python3 bench/text/train.py --text kjv.txt

%s; PyTorch %s, %d cores, load %.1f at the end.

%s""" % (version, torch.__version__, os.cpu_count(), os.getloadavg()[0], "\n".join(sections)))
    sys.exit(1 if worst > APART else 0)


if __name__ == "__main__":
    main()
