"""PyTorch's side of `dahl-bench winograd`: passes of 3x3 convolutions with a padding of 1, channels last, on one thread.

Says {"torch", "onednn"}, then reads one JSON request per line and answers each with one JSON line:

    {"pass", "batch", "side", "channels", "filters", "calls"}  {"seconds"}, of this thread's processor time, of so many calls, after one more

The pass is "forward", with a bias, "input gradient", or "weight gradient", with that of the bias.
"""

import json
import re
import sys
import time

import torch
from torch.nn import functional as F

GRADIENTS = {"input gradient": [True, False, False], "weight gradient": [False, True, True]}


class Convolution:
    def __init__(self, batch, side, channels, filters):
        last = {"memory_format": torch.channels_last}
        self.x = torch.randn(batch, channels, side, side).contiguous(**last)
        self.dy = torch.randn(batch, filters, side, side).contiguous(**last)
        self.w = torch.randn(filters, channels, 3, 3).contiguous(**last)
        self.b = torch.randn(filters)

    def run(self, wanted):
        if wanted == "forward":
            return F.conv2d(self.x, self.w, self.b, padding=1)
        return torch.ops.aten.convolution_backward(
            self.dy, self.x, self.w, [len(self.b)], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, GRADIENTS[wanted])

    def seconds(self, wanted, calls):
        self.run(wanted)
        start = time.thread_time()
        for _ in range(calls):
            self.run(wanted)
        return time.thread_time() - start


def main():
    torch.set_num_threads(1)
    onednn = re.search(r"MKL-DNN v(\S+)", torch.__config__.show())
    print(json.dumps({"torch": torch.__version__, "onednn": onednn.group(1) if onednn else "none"}), flush=True)
    shape, convolution = None, None
    with torch.inference_mode():
        for line in sys.stdin:
            request = json.loads(line)
            wanted, calls = request.pop("pass"), request.pop("calls")
            if request != shape:
                shape, convolution = request, Convolution(**request)
            print(json.dumps({"seconds": convolution.seconds(wanted, calls)}), flush=True)


if __name__ == "__main__":
    main()
