package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/dag"
	"dahl/execute"
	"dahl/plan"
	"dahl/platform"
	"dahl/schedule"
)

// tasksOptions say how the cost of a task is measured.
type tasksOptions struct {
	tasks   int
	workers int
	repeats int
	steps   int
	starpu  string
	shapes  []string
}

func newTasks() *cobra.Command {
	var o tasksOptions
	cmd := measurement(&cobra.Command{
		Use:   "tasks",
		Short: "what a task costs beside its kernel, in four graphs of empty tasks",
		Long: `tasks measures graphs of tasks that do nothing:

  once    build the graph, plan, lay out memory, compile, start workers, run one
          recorded step: everything from nothing to the schedule
  steady  a step of a long run of the compiled graph

per task, the median of the repeats. With --starpu (bench/starpu/main.c, which
"make bench-tasks" builds) the same graphs go through StarPU in the same run, in turn
with dahl's: from the first submission until all tasks have run.`,
	}, o.run)
	f := cmd.Flags()
	f.IntVar(&o.tasks, "tasks", 100_000, "tasks in a graph")
	f.IntVar(&o.workers, "workers", 2, "number of CPU cores")
	f.IntVar(&o.repeats, "repeats", 5, "measured repeats, after one that is not")
	f.IntVar(&o.steps, "steps", 20, "steps of a steady run")
	f.StringVar(&o.starpu, "starpu", "", "the `program` built from bench/starpu")
	f.StringSliceVar(&o.shapes, "shapes", names(taskShapes), "graphs")
	return cmd
}

// taskShape is a way for empty tasks to depend on each other.
type taskShape struct {
	name string
	add  func(b *dag.Builder, tasks int)
}

// taskShapes is the table of graphs; bench/starpu/main.c has the same.
var taskShapes = []taskShape{
	{"independent", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 0) }},
	{"chain", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 1) }},
	{"buffers", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 1000) }},
	{"cholesky", addCholesky},
}

func (s taskShape) String() string { return s.name }

// addScalars adds buffers of one element.
func addScalars(b *dag.Builder, n int) []dag.BufferID {
	ids := make([]dag.BufferID, n)
	for i := range ids {
		ids[i] = b.Buffer(dag.Buffer{Name: "x" + strconv.Itoa(i), Shape: []int{1}, Type: dag.Float32})
	}
	return ids
}

// addRoundRobin adds tasks that read and write one of the buffers each, in turn; no
// buffers: tasks without data.
func addRoundRobin(b *dag.Builder, tasks, buffers int) {
	b.Grow(tasks)
	x := addScalars(b, buffers)
	for t := range tasks {
		task := dag.Task{Name: "t" + strconv.Itoa(t)}
		if buffers > 0 {
			task.Accesses = []dag.Access{{Region: dag.Region{Buffer: x[t%buffers]}, Mode: dag.ReadWrite}}
		}
		b.Task(task)
	}
}

// addCholesky adds the tasks of a tiled Cholesky factorisation, right-looking, each
// tile a buffer: of n by n tiles, n the least for which there are enough tasks,
// n(n+1)(n+2)/6.
func addCholesky(b *dag.Builder, tasks int) {
	n := 1
	for n*(n+1)*(n+2)/6 < tasks {
		n++
	}
	b.Grow(n * (n + 1) * (n + 2) / 6)
	x := addScalars(b, n*(n+1)/2)
	tile := func(i, j int) dag.BufferID { return x[i*(i+1)/2+j] }
	count := 0
	add := func(changed dag.BufferID, read ...dag.BufferID) {
		accesses := make([]dag.Access, 1, 3)
		accesses[0] = dag.Access{Region: dag.Region{Buffer: changed}, Mode: dag.ReadWrite}
		for _, r := range read {
			accesses = append(accesses, dag.Access{Region: dag.Region{Buffer: r}, Mode: dag.Read})
		}
		b.Task(dag.Task{Name: "t" + strconv.Itoa(count), Accesses: accesses})
		count++
	}
	for k := range n {
		add(tile(k, k)) // potrf
		for i := k + 1; i < n; i++ {
			add(tile(i, k), tile(k, k)) // trsm
		}
		for i := k + 1; i < n; i++ {
			add(tile(i, i), tile(i, k)) // syrk
			for j := k + 1; j < i; j++ {
				add(tile(i, j), tile(i, k), tile(j, k)) // gemm
			}
		}
	}
}

// starpuSchedulers are those of StarPU to which dahl is compared.
var starpuSchedulers = []string{"eager", "lws", "dmda"}

// tasksPolicies are the policies under which dahl runs the graphs: one decides at
// run time, one plans first.
var tasksPolicies = []string{"eager", "heft"}

// taskTimes is what a graph took: everything once, of which building, compiling and running
// it are parts, and a steady step. StarPU compiles nothing and has no steady replay: 0.
type taskTimes [5]time.Duration

// taskRuntime executes a graph.
type taskRuntime struct {
	name    string
	measure func() (taskTimes, error)
	times   [len(taskTimes{})][]time.Duration // by repeat
}

func (o *tasksOptions) run(ctx context.Context, stdout, _ io.Writer) error {
	shapes, err := o.check()
	if err != nil {
		return err
	}
	p, err := machine("", "", o.workers)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %d workers, %s", p.Name, o.workers, runtime.Version())
	if o.starpu != "" {
		fmt.Fprintf(stdout, "; StarPU %s", starpuVersion())
	}
	fmt.Fprintln(stdout, "; empty tasks, ns per task, median of", o.repeats)
	fmt.Fprintln(stdout)
	fmt.Fprintln(stdout, "| graph | tasks | runtime | once | build | compile | run | steady |")
	fmt.Fprintln(stdout, "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
	for i := range shapes {
		if err := o.shape(ctx, stdout, p, &shapes[i]); err != nil {
			return fmt.Errorf("graph %s: %w", shapes[i], err)
		}
	}
	return nil
}

// check refuses options that nothing can be measured with, and finds the graphs.
func (o *tasksOptions) check() ([]taskShape, error) {
	err := cmp.Or(cli.CheckNumbers("tasks", o.tasks), cli.CheckNumbers("repeats", o.repeats), cli.CheckNumbers("steps", o.steps), cli.CheckNumbers("workers", o.workers))
	if err != nil {
		return nil, err
	}
	if o.starpu != "" {
		if _, err := exec.LookPath(o.starpu); err != nil {
			return nil, cli.InputErrorf("--starpu: %w", err)
		}
	}
	return chosen("shapes", o.shapes, taskShapes)
}

// runtimes are those that execute a graph.
func (o *tasksOptions) runtimes(ctx context.Context, p *platform.Platform, s *taskShape) []*taskRuntime {
	var all []*taskRuntime
	for _, policy := range tasksPolicies {
		all = append(all, &taskRuntime{name: "dahl " + policy, measure: func() (taskTimes, error) { return o.measure(ctx, p, s, policy) }})
	}
	for _, scheduler := range starpuSchedulers {
		if o.starpu != "" {
			all = append(all, &taskRuntime{name: "StarPU " + scheduler, measure: func() (taskTimes, error) { return o.measureStarPU(ctx, s.name, scheduler) }})
		}
	}
	return all
}

// shape measures one graph with every runtime in turn and prints their lines: medians per
// task, whose parts need not add up.
func (o *tasksOptions) shape(ctx context.Context, stdout io.Writer, p *platform.Platform, s *taskShape) error {
	prog, err := buildTasks(s, o.tasks)
	if err != nil {
		return err
	}
	tasks, runtimes := prog.Graphs[0].NumTasks(), o.runtimes(ctx, p, s)
	for repeat := range o.repeats + 1 {
		for _, r := range runtimes {
			runtime.GC()
			times, err := r.measure()
			if err != nil {
				return err
			}
			for part, took := range times {
				if repeat > 0 {
					r.times[part] = append(r.times[part], took)
				}
			}
		}
	}
	for _, r := range runtimes {
		fmt.Fprintf(stdout, "| %s | %d | %s |", s, tasks, r.name)
		for _, times := range r.times {
			per := ""
			if took := median(times); took > 0 {
				per = strconv.Itoa(int(took.Nanoseconds()) / tasks)
			}
			fmt.Fprintf(stdout, " %s |", per)
		}
		fmt.Fprintln(stdout)
	}
	return nil
}

// buildTasks builds the program of one graph.
func buildTasks(s *taskShape, tasks int) (*dag.Program, error) {
	b := dag.NewBuilder(s.name)
	s.add(b, tasks)
	g, err := b.Build()
	if err != nil {
		return nil, err
	}
	return &dag.Program{Name: s.name, Graphs: []*dag.Graph{g}, Order: []dag.Segment{{Steps: 1}}}, nil
}

// measure builds, compiles and runs the graph once, then runs it for some steps.
func (o *tasksOptions) measure(ctx context.Context, p *platform.Platform, s *taskShape, policy string) (took taskTimes, err error) {
	begin := time.Now()
	prog, err := buildTasks(s, o.tasks)
	if err != nil {
		return took, err
	}
	built := time.Since(begin)
	r, err := runnerOf(prog, p, policy)
	if err != nil {
		return took, err
	}
	defer r.Close()
	compiled := time.Since(begin)
	if _, err := r.Run(ctx, 0, 1, true); err != nil {
		return took, err
	}
	total := time.Since(begin)
	steady, err := r.Run(ctx, 0, o.steps, false)
	if err != nil {
		return took, err
	}
	return taskTimes{total, built, compiled - built, total - compiled, steady.Makespan / time.Duration(o.steps)}, nil
}

// runnerOf compiles a program of empty tasks for some cores.
func runnerOf(prog *dag.Program, p *platform.Platform, policy string) (*execute.Runner, error) {
	info, err := schedule.PolicyByName(policy)
	if err != nil {
		return nil, err
	}
	d, err := plan.Decide(prog, p, execute.Target{Here: true}, schedule.Choice{Policy: info})
	if err != nil {
		return nil, err
	}
	return execute.New(d, execute.Options{})
}

// measureStarPU runs the graph once on StarPU, after a warm-up in the same process.
func (o *tasksOptions) measureStarPU(ctx context.Context, shape, scheduler string) (took taskTimes, err error) {
	cmd := exec.CommandContext(ctx, o.starpu, shape, strconv.Itoa(o.tasks), "1")
	cmd.Env = append(os.Environ(), "STARPU_SCHED="+scheduler, "STARPU_NCPU="+strconv.Itoa(o.workers), "STARPU_SILENT=1")
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.Output()
	if err != nil {
		return took, fmt.Errorf("StarPU with scheduler %s: %w: %s", scheduler, err, cli.OneLine(errors.New(errout.String())))
	}
	var submit, total time.Duration
	if _, err := fmt.Sscan(string(out), &submit, &total); err != nil {
		return took, fmt.Errorf("StarPU with scheduler %s printed %q, not two numbers: %w", scheduler, out, err)
	}
	return taskTimes{total, submit, 0, total - submit}, nil
}

// starpuVersion asks pkg-config.
func starpuVersion() string {
	out, err := exec.Command("pkg-config", "--modversion", "starpu-1.3").Output()
	if err != nil {
		return "of unknown version"
	}
	return strings.TrimSpace(string(out))
}
