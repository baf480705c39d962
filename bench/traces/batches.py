# Records trainings of PyTorch on this machine's cores at one batch size, predicts another one with dahl, and measures that one.
# Usage: python batches.py DAHL [REPEATS], with torch. Recordings and measurements alternate, and the
# least of each counts, since other load on the machine only makes times longer.
import json, os, statistics, subprocess, sys, tempfile, time
import torch
from torch import nn

torch.set_num_threads(2)
DAHL, REPEATS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(192), nn.Linear(192, 768), nn.Linear(768, 192)

    def forward(self, x):
        return x + self.second(nn.functional.gelu(self.first(self.norm(x))))


NETS = {  # a network, the shape of a sample, and a recorded and a predicted batch size, which no other extent equals
    "mlp": (lambda: nn.Sequential(nn.Linear(784, 1021), nn.ReLU(), nn.Linear(1021, 1019), nn.ReLU(), nn.Linear(1019, 10)), (784,), 131, 257),
    "cnn": (lambda: nn.Sequential(nn.Conv2d(3, 37, 3, padding=1), nn.ReLU(), nn.Conv2d(37, 41, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                  nn.Flatten(), nn.Linear(41 * 256, 10)), (3, 32, 32), 31, 61),
    "blocks": (lambda: nn.Sequential(*[Block() for _ in range(4)], nn.Linear(192, 10)), (192,), 499, 997),
}


class Training:
    def __init__(self, make, shape, batch):
        torch.manual_seed(0)
        self.model = make()
        self.update = torch.optim.SGD(self.model.parameters(), 1e-3)
        self.x, self.y = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))

    def step(self):
        self.update.zero_grad()
        nn.functional.cross_entropy(self.model(self.x), self.y).backward()
        self.update.step()

    def seconds(self, steps=9):
        times = []
        for _ in range(steps):
            begin = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - begin)
        return min(times)

    def record(self, path):
        schedule = torch.profiler.schedule(wait=0, warmup=2, active=7)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, schedule=schedule,
                                    on_trace_ready=lambda p: p.export_chrome_trace(path)) as p:
            for _ in range(9):
                self.step()
                p.step()


def predicted(path, directory, old, new):
    """The least over the recorded steps of what dahl says with the other batch size."""
    events = json.load(open(path))["traceEvents"]
    steps = sorted({e["name"].removeprefix("ProfilerStep#") for e in events if e.get("name", "").startswith("ProfilerStep#")})
    times = []
    for step in steps:
        graph = os.path.join(directory, "graph.json")
        subprocess.run([DAHL, "import", path, "--step", step, "--extents", f"{old}={new}", "--out", graph], check=True, capture_output=True)
        subprocess.run([DAHL, "simulate", "--platform", graph.replace(".json", ".toml"), "--graph", graph, "--out", os.path.join(directory, "run")], check=True, capture_output=True)
        times.append(json.load(open(os.path.join(directory, "run", "summary.json")))["step_s"])
    return min(times)


errors = []
with tempfile.TemporaryDirectory() as directory:
    for name, (make, shape, low, high) in NETS.items():
        sizes = {b: Training(make, shape, b) for b in (low, high)}
        for t in sizes.values():
            t.seconds()
        said = {low: [], high: []}
        seen = {low: [], high: []}
        for _ in range(REPEATS):
            for old, new in ((low, high), (high, low)):
                path = os.path.join(directory, "recording.json")
                sizes[old].record(path)
                seen[new].append(sizes[new].seconds())
                said[new].append(predicted(path, directory, old, new))
        for new, old in ((high, low), (low, high)):
            p, m = min(said[new]), min(seen[new])
            errors.append(abs(p / m - 1))
            print(f"{name}: recorded at {old}, predicted at {new}: {1e3 * p:.2f} ms, measured {1e3 * m:.2f} ms, error {100 * (p / m - 1):+.1f} %", flush=True)
print(f"median error {100 * statistics.median(errors):.1f} %")
