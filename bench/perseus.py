"""Clocks of pipelines by dahl beside those of Perseus' solver: python3 bench/perseus.py [STAGESxMICROBATCHES... | PROFILE.csv:MICROBATCHES...] > table.md

A step of a pipeline has one forward and one backward task of each micro-batch on each stage, in the order 1F1B. A stage is a GPU. A
micro-batch takes there what Zeus measured of ResNet-50 at each power limit (platform/testdata/zeus), times the size of the stage, and
a third of it in the forward task. What a GPU draws while it waits is a guess. A profile of Perseus' has seconds and joules of its own for each stage,
instruction and frequency; WAIT_WATTS says then what a GPU draws while it waits.

The solver is lowtime (pip install lowtime). It walks from the slowest clocks to the shortest step, with its own exponential model of
the joules of a task, and again with joules interpolated between clocks. Each of its plans counts with the time and the joules of its
clocks, and not with those of a model. At 20 of the times on the front of all of them, its plan of the least joules by then stands beside dahl's plan
for the same deadline. DAHL names the program. FRONTS names a directory where lowtime's fronts are kept for the next comparison: they
take minutes.
"""
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

import networkx
import numpy
from lowtime.cost_model import CostModel, ExponentialModel
from lowtime.graph_utils import add_sink_node, add_source_node
from lowtime.operation import CandidateExecutionOptions, ExecutionOption, Operation, OperationSpec
from lowtime.solver import PhillipsDessouky

DAHL = os.environ.get("DAHL", "dahl")
FRONTS = os.environ.get("FRONTS")
DEADLINES = 20
IDLE_WATTS = float(os.environ.get("WAIT_WATTS", "70"))
BATCHES = 1281167 / 256  # of an epoch of ImageNet
SIZES = [1.0, 1.13, 0.94, 1.07, 1.19, 0.97, 1.04, 1.1]  # of the stages
UNIT_S = float(os.environ.get("UNIT_S", "0.004"))  # lowtime's unit of time, a fiftieth of the shortest task
GPUS = [["v100"], ["a40"], ["v100", "a40"]]  # of the stages in turn, by pipeline
PIPELINES = [(stages, micro_batches) for stages in range(2, 9) for micro_batches in (4, 8, 16)]
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def limits(gpu):
    """Seconds and watts of a batch by power limit, without limits at which another one takes less of both."""
    with open(f"{ROOT}/platform/testdata/zeus/summary_power_{gpu}.csv") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: -int(row["power_limit"]))
    return {f"{row['power_limit']}W": (float(row["time_per_epoch"]) / BATCHES, float(row["average_power"])) for row in rows}


def zeus(stages, micro_batches):
    """What each stage draws at each clock, and takes: seconds and joules of a forward and a backward task by clock."""
    kinds = GPUS[(stages + micro_batches.bit_length()) % len(GPUS)]
    of = []
    for stage, gpu in zip(range(stages), itertools.cycle(kinds)):
        takes = [{clock: (s * SIZES[stage] * part / 3, s * w * SIZES[stage] * part / 3) for clock, (s, w) in limits(gpu).items()} for part in (1, 2)]
        of.append(({clock: w for clock, (_, w) in limits(gpu).items()}, *takes))
    return of, " and ".join(kinds)


def profile(path):
    """The same of a profile of Perseus'."""
    takes = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            takes.setdefault(int(row["stage"]), {}).setdefault(row["instruction"], {})[row["frequency"] + "MHz"] = float(row["time"]), float(row["energy"])
    of = []
    for _, by in sorted(takes.items()):
        forward, backward = by["forward"], by["backward"]
        watts = {clock: (forward[clock][1] + backward[clock][1]) / (forward[clock][0] + backward[clock][0]) for clock in forward}
        of.append((watts, forward, backward))
    return of, os.path.basename(path)


class Pipeline:
    """The tasks of a step by name, with nanoseconds and joules above idle at each clock, and what waits for what."""

    def __init__(self, gpus, micro_batches):
        self.gpus, self.options, self.order = gpus, {}, []
        for stage, (_, *takes) in enumerate(gpus):
            warm = min(micro_batches, len(gpus) - stage)
            names = [f"F{stage}.{m}" for m in range(warm)]
            for m in range(micro_batches):
                names += [f"B{stage}.{m}"] + [f"F{stage}.{warm + m}"] * (warm + m < micro_batches)
            for name in names:
                self.options[name] = {clock: (round(s * 1e9), joules - s * IDLE_WATTS) for clock, (s, joules) in takes[name[0] == "B"].items()}
            self.order.append(names)
        last, each = len(gpus) - 1, range(micro_batches)
        self.waits = [(f"F{s}.{m}", f"F{s + 1}.{m}") for s in range(last) for m in each] + [(f"F{last}.{m}", f"B{last}.{m}") for m in each]
        self.waits += [(f"B{s + 1}.{m}", f"B{s}.{m}") for s in range(last) for m in each]
        self.edges = sorted(set(self.waits + [pair for names in self.order for pair in zip(names, names[1:])]))
        graph = networkx.DiGraph(self.edges)
        self.sorted, self.before = list(networkx.topological_sort(graph)), {name: list(graph.predecessors(name)) for name in graph}

    def evaluate(self, clocks):
        """Seconds of a step, and its joules."""
        end = {}
        for name in self.sorted:
            end[name] = max((end[a] for a in self.before[name]), default=0) + self.options[name][clocks[name]][0]
        step = max(end.values()) / 1e9
        return step, IDLE_WATTS * step * len(self.gpus) + sum(self.options[name][clock][1] for name, clock in clocks.items())


class Hull(CostModel):
    """Joules on the lower convex hull of the clocks, a little rounded: the solver fails where a time more saves as much as the one before."""

    def __init__(self, options):
        hull = []
        for x, y in sorted((o.quant_time, o.cost) for o in options.options):
            while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (y - hull[-2][1]) * (hull[-1][0] - hull[-2][0]):
                hull.pop()
            hull.append((x, y))
        self.times, self.costs = zip(*hull)

    def __call__(self, quant_time):
        return float(numpy.interp(quant_time, self.times, self.costs)) + 1e-5 * (self.times[-1] - quant_time) ** 2


def exponential(options):
    return ExponentialModel(options, search_strategy="best")


def walk(pipeline, model):
    """All plans of lowtime: seconds and joules."""
    specs, graph, ids = {}, networkx.DiGraph(), {}
    for name, by_clock in pipeline.options.items():
        key = tuple(by_clock.values())
        if key not in specs:
            options = CandidateExecutionOptions([ExecutionOption(ns / 1e9, UNIT_S, joules, clock) for clock, (ns, joules) in by_clock.items()])
            specs[key] = OperationSpec(options, model(options))
        ids[name] = len(ids) + 2
        graph.add_node(ids[name], op=Operation(specs[key]))
    graph.add_edges_from((ids[a], ids[b]) for a, b in pipeline.edges)
    add_source_node(graph, 0)
    add_sink_node(graph, 1)
    graph.graph["source_node"], graph.graph["sink_node"] = 0, 1
    try:
        for _ in PhillipsDessouky(graph).run():
            yield pipeline.evaluate({name: graph.nodes[i]["op"].assigned_knob for name, i in ids.items()})
    except IndexError:  # of the solver, where joules and time are hardly exponential
        print(f"lowtime has no front with {model.__name__} joules", file=sys.stderr)


def fronts(pipeline, name):
    """The front of all plans of lowtime, and the seconds that took."""
    file = f"{FRONTS}/{name}.json"
    if FRONTS and os.path.exists(file):
        with open(file) as kept:
            return json.load(kept)
    begun = time.time()
    found = front(itertools.chain(walk(pipeline, exponential), walk(pipeline, Hull))), time.time() - begun
    if FRONTS:
        with open(file, "w") as kept:
            json.dump(found, kept)
    return found


def front(plans):
    """The plans that no other one beats in both, the shortest first."""
    kept = []
    for step, joules in sorted(plans):
        if not kept or joules < kept[-1][1]:
            kept.append((step, joules))
    return kept


def write(pipeline, directory):
    """Files of the machine, the graph, and the place and order of its tasks."""
    platform = 'name = "pipeline"\n[[memory]]\nname = "ram"\n'
    for stage, (watts, *_) in enumerate(pipeline.gpus):
        first, *others = watts.items()
        platform += f'[[device]]\nname = "gpu{stage}"\nkind = "emulated"\nmemory = "ram"\nclock_name = "{first[0]}"\n'
        platform += f'power = {{ idle = "{IDLE_WATTS} W", busy = "{first[1]} W", source = "measured" }}\n'
        for clock, watts in others:
            platform += f'[[device.clock]]\nname = "{clock}"\nscale = 0.9\npower = {{ idle = "{IDLE_WATTS} W", busy = "{watts} W" }}\n'
    tasks, reads = [], {}
    for a, b in pipeline.waits:
        reads.setdefault(b, []).append(a)
    stage_of = {name: stage for stage, names in enumerate(pipeline.order) for name in names}
    for name in pipeline.sorted:
        device = f"gpu{stage_of[name]}"
        costs = pipeline.options[name]
        tasks.append({"name": name, "op": name[0], "device": device, "writes": [name], "reads": reads.get(name, []),
                      "ns": {key(device, clock, costs): ns for clock, (ns, _) in costs.items()},
                      "joules": {key(device, clock, costs): joules for clock, (_, joules) in costs.items()}})
    graph = {"format": "dahl-graph 1", "name": "pipeline", "buffers": [{"name": name, "bytes": 8} for name in pipeline.sorted], "tasks": tasks}
    plan = {"format": "dahl-plan 1", "devices": {f"gpu{s}": names for s, names in enumerate(pipeline.order)}}
    for file, text in [("machine.toml", platform), ("graph.json", json.dumps(graph)), ("order.json", json.dumps(plan))]:
        with open(f"{directory}/{file}", "w") as out:
            out.write(text)


def key(device, clock, costs):
    return device if clock == next(iter(costs)) else f"{device}@{clock}"


def dahl(directory, deadline):
    """Seconds and joules of dahl's plan, and the bound that it states."""
    command = [DAHL, "plan", "--platform", "machine.toml", "--graph", "graph.json", "--plan", "order.json", "--objective", "energy",
               "--deadline", f"{round(deadline * 1e9)}ns", "--steps", "1", "--budget", "40000 nodes", "--out", "plan", "--json"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    said = json.loads(done.stdout)
    return said["makespan_s"], said["energy_j"]["total"], said["lower_bound_j"]


def compare(name, stages, kinds, micro_batches):
    pipeline = Pipeline(stages, micro_batches)
    plans, walked = fronts(pipeline, name)
    some = [plans[i * (len(plans) - 1) // (DEADLINES - 1)] for i in range(DEADLINES)]
    ratios, gaps, begun = [], [], time.time()
    with tempfile.TemporaryDirectory() as directory:
        write(pipeline, directory)
        for step, joules in some:
            took, drawn, bound = dahl(directory, step)
            if took > step + 1e-9:
                sys.exit(f"dahl's step takes {took} s, and was to take {step} s")
            ratios.append(drawn / joules)
            gaps.append(drawn / bound - 1)
    worse = sum(r > 1 + 1e-9 for r in ratios)
    print(f"| {len(stages)} | {micro_batches} | {kinds} | {len(pipeline.options)} | {len(plans)} | {worse} | {max(ratios):.4f} | {sum(ratios) / len(ratios):.4f} | "
          f"{min(ratios):.4f} | {100 * max(gaps):.2f} | {100 * sum(gaps) / len(gaps):.2f} | {walked:.1f} | {(time.time() - begun) / DEADLINES:.2f} |", flush=True)


if __name__ == "__main__":
    print("| stages | micro-batches | GPUs | tasks | plans on lowtime's front | deadlines at which dahl takes more | joules, dahl / lowtime: most | mean | least "
          "| gap to dahl's bound, %: most | mean | lowtime, s | dahl, s for each deadline |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for text in sys.argv[1:] or [f"{stages}x{micro_batches}" for stages, micro_batches in PIPELINES]:
        path, colon, micro_batches = text.rpartition(":")
        if colon:
            compare(f"{os.path.basename(path)}-{micro_batches}", *profile(path), int(micro_batches))
        else:
            stages, micro_batches = map(int, text.split("x"))
            compare(f"{text}-{zeus(stages, micro_batches)[1].replace(' and ', '-')}", *zeus(stages, micro_batches), micro_batches)
