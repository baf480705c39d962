"""The other program's side of package peer: one process per setting of the environment.

    worker.py MODULE CORES

MODULE is torch_worker or jax_worker beside this file. CORES keeps the process on so many cores; 0: on all.

Reads one JSON request per line and answers each with one JSON line, {"error": ...} where it fails:

    {"do": "describe"}   versions and what the program says of its build
    {"do": "open", ...}  builds the network; one per format is kept until the next "first"
    {"do": "losses", "mode", "format", "steps"}          the loss of every step from the first weights
    {"do": "time", "mode", "format", "steps", "warmup"}  the seconds of the steps, after some more
    {"do": "ready", "format", "steps", "rates"}  compiles all that a training calls, then goes back to the first
                                              weights; the losses of the first steps of the first epoch
    {"do": "epoch", "format", "epoch", "rates"}  trains on all samples in the order of that epoch
    {"do": "test", "format"}                  the mean loss of the test samples, and how many labels are right

The mode is "train", "infer", or "frozen" where the program has such a form of a network. Timed training
begins from the first weights, so that no repetition meets the denormal numbers of a network that has
learnt all. "losses" and "time" take ready batches of the first samples in turn. Seconds are of the work
alone, CPU seconds of all threads of this process meanwhile; the collector is off.

What lies in the file of data: samples (N×C×H×W bytes of pixels, or N×T tokens), labels (N, or N×T), test_samples,
test_labels, and order, a row of indices per epoch.
"""

import gc
import importlib
import json
import math
import os
import resource
import sys
import time

IN_TURN = 1024  # samples at most, of which "losses" and "time" make their batches


def window(settings, size):
    """Size, stride and dilation of windows along rows and along columns, and the pads on top, left, bottom, right.

    size is the setting that names it. Windows of a pooling are as far apart as they are large where nothing else is said."""
    columns, pads = settings["Columns"], settings["Pads"]
    apart = 1 if size == "Kernel" else 0
    rows = (settings[size], settings["Stride"] or apart or settings[size], settings.get("Dilation") or 1)
    columns = (columns["Size"] or settings[size],
               columns["Stride"] or settings["Stride"] or apart or columns["Size"] or settings[size],
               columns["Dilation"] or settings.get("Dilation") or 1)
    return rows, columns, [settings["Pad"] + pads[side] for side in ("Top", "Left", "Bottom", "Right")]


def timed(work):
    """The result of work, its seconds, and the CPU seconds of this process meanwhile."""
    gc.collect()
    gc.disable()
    try:
        cpu, start = cpu_seconds(), time.perf_counter()
        result = work()
        return result, {"seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - cpu}
    finally:
        gc.enable()


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_bytes():
    """The most memory that this process has held. The system's ru_maxrss also has what its parent held before."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def finite(losses):
    """Losses as they came, or an error at the first that is no number."""
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            raise ValueError(f"the loss of step {step + 1} is {loss}")
    return losses


class Session:
    """The networks that are open, by format."""

    def __init__(self, program):
        self.program, self.networks = program, {}

    def answer(self, request):
        do = request["do"]
        if do == "describe":
            return {"versions": self.program.describe()}
        form = request["format"]
        if do == "open":
            if request["first"]:
                self.networks.clear()
                self.program.forget()
            self.networks[form] = self.program.Network(request)
            return {}
        return getattr(self, do)(self.networks[form], request)

    def losses(self, network, request):
        network.reset()
        return {"losses": finite(network.losses(request["mode"], request["steps"]))}

    def time(self, network, request):
        mode = request["mode"]
        if mode == "train":
            network.reset()
        network.steps(mode, request["warmup"])
        network.finish()
        _, took = timed(lambda: (network.steps(mode, request["steps"]), network.finish()))
        return took

    def ready(self, network, request):
        network.reset()
        losses = network.ready(request["rates"][:request["steps"]])
        network.reset()
        network.finish()
        return {"losses": finite(losses)}

    def epoch(self, network, request):
        losses, took = timed(lambda: network.epoch(request["epoch"], request["rates"]))
        return {"losses": finite(losses), "peak_bytes": peak_bytes(), **took}

    def test(self, network, request):
        (loss, correct), took = timed(network.test)
        return {"losses": finite([loss]), "correct": correct, "peak_bytes": peak_bytes(), **took}


def main(module, cores):
    # What the program prints goes to the other stream, so that it is never taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session, missing = None, None
    try:
        if cores:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
        session = Session(importlib.import_module(module))
    except ImportError as failure:
        missing = {"error": f"{type(failure).__name__}: {failure}"}
    for line in sys.stdin:
        try:
            reply = missing or session.answer(json.loads(line))
        except Exception as failure:  # the caller prints it and ends
            text = str(failure).strip().splitlines() or [""]
            reply = {"error": f"{type(failure).__name__}: {text[0]}"}
        print(json.dumps(reply), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
