package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestBenchTasks runs the command on small graphs, with a script in place of StarPU's
// program: 3,000 and 7,000 ns for 100 tasks are 30 and 70 ns each. Four by four tiles
// have 4·5·6/6 = 20 tasks, so 100 tasks take 8 by 8: 8·9·10/6 = 120.
func TestBenchTasks(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the script needs a shell")
	}
	script := filepath.Join(t.TempDir(), "starpu")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho 3000 7000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := tasksOptions{tasks: 100, workers: 2, repeats: 1, steps: 2, starpu: script, shapes: names(taskShapes)}
	if err := o.run(context.Background(), &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| independent | 100 | dahl eager |", "| chain | 100 | dahl heft |", "| cholesky | 120 | dahl eager |",
		"| buffers | 100 | StarPU lws | 70 | 30 |  | 40 |  |"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line with %q in\n%s", want, out.String())
		}
	}
	o.shapes = []string{"torus"}
	if err := o.run(context.Background(), &out, io.Discard); err == nil || !strings.Contains(err.Error(), "torus") {
		t.Errorf("error %v, want one about the shape", err)
	}
}

// BenchmarkTasks builds, compiles and runs each graph of `dahl-bench tasks` once; it
// is there to be profiled.
func BenchmarkTasks(b *testing.B) {
	p, err := machine("", "", 2)
	if err != nil {
		b.Fatal(err)
	}
	for i := range taskShapes {
		for _, policy := range tasksPolicies {
			b.Run(taskShapes[i].name+"/"+policy, func(b *testing.B) {
				o := tasksOptions{tasks: 100_000, steps: 1}
				for b.Loop() {
					if _, err := o.measure(context.Background(), p, &taskShapes[i], policy); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkSteadyTasks runs steps of each compiled graph, under every policy.
func BenchmarkSteadyTasks(b *testing.B) {
	p, err := machine("", "", 2)
	if err != nil {
		b.Fatal(err)
	}
	for i := range taskShapes {
		for _, policy := range []string{"eager", "dmda", "heft"} {
			b.Run(taskShapes[i].name+"/"+policy, func(b *testing.B) {
				prog, err := buildTasks(&taskShapes[i], 100_000)
				if err != nil {
					b.Fatal(err)
				}
				r, err := runnerOf(prog, p, policy)
				if err != nil {
					b.Fatal(err)
				}
				defer r.Close()
				b.ResetTimer()
				if _, err := r.Run(context.Background(), 0, b.N, false); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(prog.Graphs[0].NumTasks()), "ns/task")
			})
		}
	}
}
