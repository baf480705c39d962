package recording

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"dahl/dag"
)

// resnet is a part of a real recording with one whole step; see its README.
const resnet = "../testdata/pytorch/resnet_step.json.gz"

func open(t testing.TB, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// ends lists when tasks end if each starts when those that it waits for have ended.
func ends(g *dag.Graph) []int64 {
	end := make([]int64, len(g.Tasks))
	for i := range g.Tasks {
		for _, p := range g.Preds(dag.TaskID(i)) {
			end[i] = max(end[i], end[p])
		}
		end[i] += g.Tasks[i].Costs[0].Ns
	}
	return end
}

// TestReplaysRecording: each task of a real recording ends when it did, which the file says.
func TestReplaysRecording(t *testing.T) {
	r, err := readKineto(File{Name: "resnet", In: open(t, resnet)}, all())
	if err != nil {
		t.Fatal(err)
	}
	line := newTimeline(r)
	for step := everyStep; step < len(r.steps); step++ {
		start, last := r.start, int64(0)
		if step != everyStep {
			start = r.steps[step].start
		}
		for _, k := range line.tasks {
			if step == everyStep || k.step == step {
				last = max(last, k.end)
			}
		}
		j, err := newJob([]*timeline{line}, 0)
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		if step != everyStep {
			name = r.steps[step].name
		}
		g, err := j.graph("resnet", name)
		if err != nil {
			t.Fatal(err)
		}
		makespan := int64(0)
		for _, e := range ends(g) {
			makespan = max(makespan, e)
		}
		if recorded := last - start; makespan != recorded {
			t.Errorf("step %d replayed in %d ns, recorded %d", step, makespan, recorded)
		}
	}
	if len(r.left) > 1 || r.left["waits in a circle"] > 0 {
		t.Errorf("left out: %v", r.left)
	}
}

// file makes a recording of lines "category thread name start duration args" in microseconds.
func file(lines ...string) string {
	var events []string
	for _, l := range lines {
		w := strings.SplitN(l, " ", 6)
		args := "{}"
		if len(w) == 6 {
			args = w[5]
		}
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":%q,"pid":1,"tid":%s,"name":%q,"ts":%s,"dur":%s,"args":%s}`, w[0], w[1], w[2], w[3], w[4], args))
	}
	return `{"schemaVersion":1,"deviceProperties":[{"id":3,"name":"Tesla V100-SXM2-16GB","totalGlobalMem":16945512448}],"traceEvents":[` + strings.Join(events, ",") + `]}`
}

// TestTimes: what each task waits for and how long it takes, by hand. All times are microseconds.
//
//	thread 1   op 100–130, launch 110–120      wait for the GPU from 150, call until 197
//	stream 7                     kernel 123–190, another one 190–195 after a gap of 0
//	thread 2   begins at 131, when thread 1 has ended its operator, and ends at 140; thread 1 goes on at 145
func TestTimes(t *testing.T) {
	src := file(
		`cpu_op 1 aten::mm 100 30 {"External id":5,"Input Dims":[[7,11],[11,13]],"Input type":["float","float"]}`,
		`cuda_runtime 1 cudaLaunchKernel 110 10 {"correlation":1}`,
		`kernel 7 gemm 123 67 {"correlation":1,"device":3,"stream":7}`,
		`cpu_op 2 backward 131 9`,
		`cuda_runtime 2 cudaLaunchKernel 133 2 {"correlation":2}`,
		`kernel 7 other 190 5 {"correlation":2,"device":3,"stream":7}`,
		`cuda_runtime 1 cudaDeviceSynchronize 150 47 {"correlation":3}`,
	)
	r, err := Read([]File{{Name: "x.json", In: strings.NewReader(src)}}, "x", Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name  string
		ns    int64
		after string
	}{
		{"host#1", 20_000, ""},                   // of thread 1 until the launch has returned
		{"host#2", 10_000, "host#1"},             // the rest of the operator
		{"aten::mm#1", 70_000, "host#1"},         // 3 µs before it began
		{"host: wait#1", 0, "host#2"},            // of thread 2
		{"host#3", 4_000, "host: wait#1"},        // of thread 2: what is known of the time until its launch has returned,
		{"host: unexplained#1", 1_000, "host#3"}, // and the rest of it
		{"host#4", 5_000, "host: unexplained#1"},
		{"host: wait#2", 0, "host#2 host#4"}, // of thread 1 for thread 2
		{"host: unexplained#2", 10_000, "host: wait#2"},
		{"backward#1", 5_000, "host: unexplained#1 aten::mm#1"},
		{"host: wait#3", 0, "host: unexplained#2 backward#1"},
		{"host#5", 2_000, "host: wait#3"},
	}
	if len(r.Graph.Tasks) != len(want) {
		t.Errorf("%d tasks, want %d", len(r.Graph.Tasks), len(want))
	}
	for _, w := range want {
		found := false
		for i := range r.Graph.Tasks {
			k := &r.Graph.Tasks[i]
			if k.Name != w.name {
				continue
			}
			found = true
			var after []string
			for _, p := range k.After {
				after = append(after, r.Graph.Tasks[p].Name)
			}
			if got := strings.Join(after, " "); k.Costs[0].Ns != w.ns || got != w.after {
				t.Errorf("%s takes %d ns after %q, want %d after %q", k.Name, k.Costs[0].Ns, got, w.ns, w.after)
			}
			if w.name == "aten::mm#1" && (k.Flops != 2*7*11*13 || k.MovedBytes != 4*(7*11+11*13+7*13) || k.Placement.Device != "gpu0") {
				t.Errorf("aten::mm has %v flop, %d bytes on %v", k.Flops, k.MovedBytes, k.Placement.Device)
			}
		}
		if !found {
			t.Errorf("no task %s", w.name)
		}
	}
}

// TestComputing: a product that copies an operand before is one task of 30 us, with the work of the product; of two operators for the same product the inner one is the task.
func TestComputing(t *testing.T) {
	const product = ` {"Input Dims":[[7],[5,11],[11,7]],"Input type":["float","float","float"]}`
	r := read(t, Options{}, file(
		`cpu_op 1 aten::addmm 100 30`+product, `cpu_op 1 aten::copy_ 103 5 {"Input Dims":[[5,7],[7]],"Input type":["float","float"]}`,
		`cpu_op 1 aten::linear 140 20 {"Input Dims":[[5,11],[7,11]],"Input type":["float","float"]}`, `cpu_op 1 aten::addmm 143 13`+product))
	var got []string
	for i := range r.Graph.Tasks {
		if k := &r.Graph.Tasks[i]; k.Flops > 0 || k.MovedBytes > 0 {
			got = append(got, fmt.Sprintf("%s %g flop %d ns", k.Op, k.Flops, k.Costs[0].Ns))
		}
	}
	if text := strings.Join(got, ", "); text != "aten::addmm 770 flop 30000 ns, aten::addmm 770 flop 13000 ns" { // 2·5·11·7
		t.Errorf("tasks with work: %s", text)
	}
}

// TestNanoseconds: times of today in microseconds with three decimals do not fit a float64.
func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{
		"1689179601896060.123": 1689179601896060123, "7": 7000, "7.5": 7500, `"7.25"`: 7250, "-2.5": -2500, "1.5e3": 1_500_000, "0.0004": 0,
	} {
		if got, err := nanoseconds([]byte(text)); err != nil || got != want {
			t.Errorf("%s µs are %d ns, %v; want %d", text, got, err, want)
		}
	}
}

// ofGroup is a recording of one of 8 ranks with an exchange in a group of some ranks.
var ofGroup = strings.Replace(file(`kernel 7 sum 2 3 {"correlation":1,"device":3,"stream":7,"Collective name":"allreduce","Group size":%d,"In msg nelems":8,"dtype":"Float"}`, `user_annotation 1 ProfilerStep#1 0 5`),
	`"schemaVersion":1`, `"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":8}`, 1)

// TestMistakes: each mistake is one line that names the file.
func TestMistakes(t *testing.T) {
	good := file(`cpu_op 1 aten::mm 100 30`)
	for name, c := range map[string]struct{ src, want string }{
		"cut off":         {good[:len(good)-20], "x.json: the file ends in the middle"},
		"no JSON":         {strings.Replace(good, `"ph"`, `ph`, 1), "x.json: not JSON"},
		"clock backwards": {file(`cpu_op 1 aten::mm 100 -30`), "a clock ran backwards"},
		"negative copy":   {file(`gpu_memcpy 7 Memcpy 2 3 {"correlation":1,"device":3,"stream":7,"bytes":-32768}`), "x.json: at byte 261: event \"Memcpy\": bytes is -32768"},
		"too many bytes":  {file(`cuda_runtime 1 cudaMemcpyAsync 1 8 {"correlation":1}`, `gpu_memcpy 7 Memcpy 2 3 {"correlation":1,"device":3,"stream":7,"bytes":9000000000000000000}`), "x.json: graph"},
		"negative group":  {strings.Replace(ofGroup, "%d", "-5", 1), "event \"sum\": Group size is -5; the file is damaged: want 1 to 65536"},
		"vast group":      {strings.Replace(ofGroup, "%d", "65537", 1), "Group size is 65537"},
		"vast group, too": {strings.Replace(twoRanks, `"pg_size","value":2`, `"pg_size","value":65537`, 1), `node "record_param_comms": pg_size is 65537; the file is damaged: want 1 to 65536`},
		"no times":        {file(`cpu_op 1 aten::mm "now" 30`), "want microseconds"},
		"no work":         {`{"traceEvents":[]}`, "record with torch.profiler"},
		"no list":         {`{"traceEvents":3}`, "want a list"},
	} {
		_, err := Read([]File{{Name: "x.json", In: strings.NewReader(c.src)}}, "x", Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want one line with %q", name, err, c.want)
		}
	}
	if _, err := Read([]File{{Name: "x.json", In: strings.NewReader(good)}}, "x", Options{Step: "9"}); err == nil || !strings.Contains(err.Error(), "step") {
		t.Errorf("step 9: %v", err)
	}
}

// BenchmarkTimeline: recordings of work of a GPU alone, and of a thread that waits again and again for another one, of two sizes each. Time grows with the size and not with its square.
func BenchmarkTimeline(b *testing.B) {
	for _, n := range []int{10_000, 40_000} {
		var kernels, waits []string
		for i := range n {
			kernels = append(kernels, fmt.Sprintf(`kernel 7 gemm %d 5 {"device":3,"stream":7}`, 10*i))
			waits = append(waits, fmt.Sprintf(`cpu_op 1 aten::mm %d 2`, 10*i), fmt.Sprintf(`cpu_op 2 backward %d 2`, 10*i+5))
		}
		for name, lines := range map[string][]string{"kernels": kernels, "waits": waits} {
			b.Run(fmt.Sprint(name, n), func(b *testing.B) {
				src := file(lines...)
				for b.Loop() {
					b.StopTimer()
					r, err := readKineto(File{Name: "x.json", In: strings.NewReader(src)}, all())
					if err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
					newTimeline(r)
				}
			})
		}
	}
}

// FuzzRead: no file makes it panic, and what it reads is a sound graph that a machine can run.
func FuzzRead(f *testing.F) {
	f.Add(file(`cpu_op 1 aten::mm 100 30 {"Input Dims":[[7,11],[11,13]],"Input type":["float","float"]}`, `cuda_runtime 1 cudaLaunchKernel 110 10 {"correlation":1}`, `kernel 7 gemm 123 67 {"correlation":1,"device":3,"stream":7}`))
	f.Add(file(`cuda_runtime 1 cudaMemcpyAsync 1 8 {"correlation":1}`, `gpu_memcpy 7 Memcpy 2 3 {"correlation":1,"device":3,"stream":7}`, `cuda_runtime 1 cudaStreamSynchronize 9 1`, `user_annotation 1 ProfilerStep#1 0 5`))
	f.Add(`[{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2}]`)
	f.Add(strings.Replace(ofGroup, "%d", "-5", 1))
	f.Add(strings.Replace(ofGroup, "%d", "2", 1))
	f.Fuzz(func(t *testing.T, src string) {
		r, err := Read([]File{{Name: "x.json", In: strings.NewReader(src)}}, "x", Options{})
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %q", err)
			}
			return
		}
		if err := r.Graph.Check(); err != nil {
			t.Error(err)
		}
		again := func() (io.Reader, error) { return strings.NewReader(src), nil }
		r, err = Read([]File{{Name: "x.json", In: strings.NewReader(src), Again: again}}, "x", Options{Step: "1", Ranks: 2})
		if err == nil {
			err = r.Graph.Check()
		} else if !strings.Contains(err.Error(), "\n") {
			return
		}
		if err != nil {
			t.Error(err)
		}
	})
}
