package recording

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

// late has 7 steps of 100 us. Each launches two kernels of 47 us at its beginning, on one stream. The first stands in the queue behind two kernels of 650 us together, which were launched
// before the recording. The last step waits for the GPU.
func late() string {
	lines := []string{`kernel 7 before 0 300 {"correlation":98,"device":3,"stream":7}`, `kernel 7 before 300 350 {"correlation":99,"device":3,"stream":7}`}
	start := 650
	for s := range 7 {
		lines = append(lines, fmt.Sprintf(`user_annotation 1 ProfilerStep#%d %d 100`, s, s*100+5), fmt.Sprintf(`cpu_op 1 aten::add %d 30`, s*100+10))
		for k := range 2 {
			link := 1 + 2*s + k
			lines = append(lines, fmt.Sprintf(`cuda_runtime 1 cudaLaunchKernel %d 3 {"correlation":%d}`, s*100+12+4*k, link),
				fmt.Sprintf(`kernel 7 add%d %d 47 {"correlation":%d,"device":3,"stream":7}`, k, start, link))
			start += 47
		}
	}
	slices.Reverse(lines) // the order of the file does not matter
	return file(append(lines, fmt.Sprintf(`cuda_runtime 1 cudaDeviceSynchronize 650 %d {"correlation":500}`, start-650+2))...)
}

// TestReadStep: a step is the same graph whether the whole file is held for it or the steps around it.
func TestReadStep(t *testing.T) {
	src := late()
	read := func(o Options, again func() (io.Reader, error)) (string, int) {
		r := must.Get(Read([]File{{Name: "x.json", In: strings.NewReader(src), Again: again}}, "x", o))(t)
		var out bytes.Buffer
		must.Do(t, r.Graph.WriteJSON(&out))
		return out.String(), r.Graph.NumTasks()
	}
	for s := range 7 {
		o := Options{Step: fmt.Sprint(s)}
		whole, n := read(o, nil)
		part, _ := read(o, func() (io.Reader, error) { return strings.NewReader(src), nil })
		if whole != part || n < 5 {
			t.Errorf("step %d of %d tasks is another graph if the file is read twice:\n%s\n%s", s, n, whole, part)
		}
	}
}

// TestKeepsThreeSteps: of 7 steps, the graph of the second needs what the first three have and launched.
func TestKeepsThreeSteps(t *testing.T) {
	f := File{Name: "x.json", In: strings.NewReader(late()), Again: func() (io.Reader, error) { return strings.NewReader(late()), nil }}
	r := must.Get(readStep(f, readKineto, "1"))(t)
	kernels, calls := len(r.streams[0].events), 0
	for _, e := range r.threads[0].events {
		if e.cat == call {
			calls++
		}
	}
	// Kernels launched by steps 0 to 2, and the two before.
	if calls != 6 || kernels != 8 || len(r.steps) != 3 {
		t.Errorf("%d calls and %d kernels of %d steps, want 6 and 8 of 3", calls, kernels, len(r.steps))
	}
}
