package recording

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/dag"
)

// Extents are extents of shapes to be replaced, such as the number of samples by another one.
type Extents map[int64]int64

// ParseExtents reads a list such as "32=64,8192=16384".
func ParseExtents(text string) (Extents, error) {
	e := Extents{}
	for _, pair := range strings.Split(text, ",") {
		from, to, _ := strings.Cut(pair, "=")
		a, errA := strconv.ParseInt(from, 10, 32)
		b, errB := strconv.ParseInt(to, 10, 32)
		if errA != nil || errB != nil || a < 1 || b < 1 {
			return nil, fmt.Errorf("extents %q: write pairs of numbers above 0, such as 32=64,8192=16384", text)
		}
		if _, twice := e[a]; twice {
			return nil, fmt.Errorf("extents %q: %d is given twice; write one pair for it", text, a)
		}
		e[a] = b
	}
	return e, nil
}

// of gives operands with other extents.
func (e Extents) of(a *operands) *operands {
	other := &operands{inputs: slices.Clone(a.inputs), outputs: a.outputs}
	for i := range other.inputs {
		in := &other.inputs[i]
		in.shapes = slices.Clone(in.shapes)
		for j := range in.shapes {
			in.shapes[j] = slices.Clone(in.shapes[j])
			for d, n := range in.shapes[j] {
				if to, ok := e[n]; ok {
					in.shapes[j][d] = to
				}
			}
		}
	}
	return other
}

// rates are the speed and the bandwidth of a device.
type rates struct{ flops, bytesPerSec float64 }

func (r rates) seconds(w work) float64 { return max(w.flops/r.flops, float64(w.bytes)/r.bytesPerSec) }

// ratesOf are the rates of the device that did a task.
func (t *timeline) ratesOf(k *task, typ dag.DType) rates {
	if k.stream < 0 {
		return rates{coreFlops, hostBytesPerSec}
	}
	b := t.boardOf(t.streams[k.stream].device)
	if typ == dag.BFloat16 {
		return rates{b.bfloat16, b.bytesPerSec}
	}
	return rates{b.float32, b.bytesPerSec}
}

// resize gives the tasks of operators whose shapes have other extents the time of the new work. It follows the roofline of the
// recorded device, but for the part that every operator on a host takes: the time of the shortest one. It returns the number of these tasks.
func (t *timeline) resize(e Extents) (resized int) {
	start := int64(1) << 62
	for i := range t.tasks {
		if k := &t.tasks[i]; k.stream < 0 && k.event != nil {
			start = min(start, k.end-k.start)
		}
	}
	others := map[*operands]*operands{}
	operators := map[*event]*event{}
	for i := range t.tasks {
		k := &t.tasks[i]
		op := k.operator
		if k.stream < 0 {
			op = k.event
		}
		if op == nil || op.args == nil || !op.hasWork() {
			continue
		}
		if others[op.args] == nil {
			others[op.args] = e.of(op.args)
		}
		before, _ := op.work()
		changed := *op
		changed.args = others[op.args]
		after, _ := changed.work()
		if after == before {
			continue
		}
		resized++
		device := t.ratesOf(k, before.typ)
		ratio := device.seconds(after) / device.seconds(before)
		if k.stream >= 0 {
			k.resized = scaleTime(k.end-k.start, 0, ratio)
			if operators[op] == nil {
				operators[op] = &changed
			}
			continue
		}
		k.resized, k.event = scaleTime(k.end-k.start, start, ratio), &changed
	}
	for i := range t.tasks {
		if now := operators[t.tasks[i].operator]; now != nil {
			t.tasks[i].operator = now
		}
	}
	return resized
}

// scaleTime scales all of a time but a part.
func scaleTime(ns, part int64, ratio float64) *int64 {
	part = min(part, ns)
	scaled := part + int64(float64(ns-part)*ratio)
	return &scaled
}
