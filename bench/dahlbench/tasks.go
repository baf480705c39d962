package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
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
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "what a task costs beside its kernel, in four graphs of empty tasks",
		Long: `tasks measures graphs of tasks that do nothing:

  once    build the graph, plan, lay out memory, compile, start workers, run one
          recorded step: everything from nothing to the schedule
  steady  a step of a long run of the compiled graph

per task, the median of the repeats. With --starpu (bench/starpu/main.c, which
"make bench-tasks" builds) the same graphs go through StarPU in the same run, in turn
with dahl's: from the first submission until all tasks have run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.tasks, "tasks", 100_000, "tasks in a graph")
	f.IntVar(&o.workers, "workers", 2, "number of CPU cores")
	f.IntVar(&o.repeats, "repeats", 5, "measured repeats, after one that is not")
	f.IntVar(&o.steps, "steps", 20, "steps of a steady run")
	f.StringVar(&o.starpu, "starpu", "", "the `program` built from bench/starpu")
	f.StringSliceVar(&o.shapes, "shapes", shapeNames(), "graphs")
	return cmd
}

// taskShape is a way for empty tasks to depend on each other.
type taskShape struct {
	name string
	add  func(b *dag.Builder, tasks int)
}

// roundRobinBuffers is the number of buffers of the shape "buffers".
const roundRobinBuffers = 1000

// taskShapes is the table of graphs; bench/starpu/main.c has the same.
var taskShapes = []taskShape{
	{"independent", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 0) }},
	{"chain", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, 1) }},
	{"buffers", func(b *dag.Builder, tasks int) { addRoundRobin(b, tasks, roundRobinBuffers) }},
	{"cholesky", addCholesky},
}

func shapeNames() []string {
	var names []string
	for _, s := range taskShapes {
		names = append(names, s.name)
	}
	return names
}

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

// onceTimes are the parts of building, compiling and running a graph once.
type onceTimes struct{ build, compile, run, total time.Duration }

func (o *tasksOptions) run(ctx context.Context, stdout io.Writer) error {
	shapes, err := o.check()
	if err != nil {
		return err
	}
	p, err := cores(o.workers)
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
	for _, s := range shapes {
		if err := o.shape(ctx, stdout, p, s); err != nil {
			return fmt.Errorf("graph %s: %w", s.name, err)
		}
	}
	return nil
}

// check refuses options that nothing can be measured with, and finds the graphs.
func (o *tasksOptions) check() ([]*taskShape, error) {
	err := cmp.Or(cli.CheckNumbers("tasks", o.tasks), cli.CheckNumbers("repeats", o.repeats), cli.CheckNumbers("steps", o.steps), cli.CheckNumbers("workers", o.workers))
	if err != nil {
		return nil, err
	}
	if o.starpu != "" {
		if _, err := exec.LookPath(o.starpu); err != nil {
			return nil, cli.InputErrorf("--starpu: %w", err)
		}
	}
	var shapes []*taskShape
	for _, name := range o.shapes {
		i := slices.IndexFunc(taskShapes, func(s taskShape) bool { return s.name == name })
		if i < 0 {
			return nil, cli.InputErrorf("--shapes %q: it is not one of %s", name, strings.Join(shapeNames(), ", "))
		}
		shapes = append(shapes, &taskShapes[i])
	}
	return shapes, nil
}

// shape measures one graph with every contestant in turn and prints their lines.
func (o *tasksOptions) shape(ctx context.Context, stdout io.Writer, p *platform.Platform, s *taskShape) error {
	ours, steady := make([][]onceTimes, len(tasksPolicies)), make([][]time.Duration, len(tasksPolicies))
	theirs := make([][]onceTimes, len(starpuSchedulers))
	tasks := 0
	for repeat := range o.repeats + 1 {
		for k, policy := range tasksPolicies {
			runtime.GC()
			once, step, n, err := o.measure(ctx, p, s, policy)
			if err != nil {
				return err
			}
			tasks = n
			if repeat > 0 {
				ours[k], steady[k] = append(ours[k], once), append(steady[k], step)
			}
		}
		for k, scheduler := range starpuSchedulers {
			if o.starpu == "" || repeat == 0 { // its program has a warm-up of its own
				continue
			}
			once, err := o.measureStarPU(ctx, s.name, scheduler)
			if err != nil {
				return err
			}
			theirs[k] = append(theirs[k], once)
		}
	}
	for k, policy := range tasksPolicies {
		printTimes(stdout, s.name, tasks, "dahl "+policy, ours[k], steady[k])
	}
	for k, scheduler := range starpuSchedulers {
		if o.starpu != "" {
			printTimes(stdout, s.name, tasks, "StarPU "+scheduler, theirs[k], nil)
		}
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

// measure builds, compiles and runs the graph once, then runs it for some steps and
// returns the time of one.
func (o *tasksOptions) measure(ctx context.Context, p *platform.Platform, s *taskShape, policy string) (once onceTimes, step time.Duration, tasks int, err error) {
	begin := time.Now()
	prog, err := buildTasks(s, o.tasks)
	if err != nil {
		return once, 0, 0, err
	}
	once.build = time.Since(begin)
	r, err := runnerOf(prog, p, policy)
	if err != nil {
		return once, 0, 0, err
	}
	defer r.Close()
	once.compile = time.Since(begin) - once.build
	if _, err := r.Run(ctx, 0, 1, true); err != nil {
		return once, 0, 0, err
	}
	once.total = time.Since(begin)
	once.run = once.total - once.build - once.compile
	steady, err := r.Run(ctx, 0, o.steps, false)
	if err != nil {
		return once, 0, 0, err
	}
	return once, steady.Makespan / time.Duration(o.steps), prog.Graphs[0].NumTasks(), nil
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
func (o *tasksOptions) measureStarPU(ctx context.Context, shape, scheduler string) (onceTimes, error) {
	cmd := exec.CommandContext(ctx, o.starpu, shape, strconv.Itoa(o.tasks), "1")
	cmd.Env = append(os.Environ(), "STARPU_SCHED="+scheduler, "STARPU_NCPU="+strconv.Itoa(o.workers), "STARPU_SILENT=1")
	var errout bytes.Buffer
	cmd.Stderr = &errout
	out, err := cmd.Output()
	if err != nil {
		return onceTimes{}, fmt.Errorf("StarPU with scheduler %s: %w: %s", scheduler, err, cli.OneLine(errors.New(errout.String())))
	}
	var submit, total int64
	if _, err := fmt.Fscan(bufio.NewReader(bytes.NewReader(out)), &submit, &total); err != nil {
		return onceTimes{}, fmt.Errorf("StarPU with scheduler %s printed %q, not two numbers: %w", scheduler, out, err)
	}
	return onceTimes{build: time.Duration(submit), run: time.Duration(total - submit), total: time.Duration(total)}, nil
}

// starpuVersion asks pkg-config.
func starpuVersion() string {
	out, err := exec.Command("pkg-config", "--modversion", "starpu-1.3").Output()
	if err != nil {
		return "of unknown version"
	}
	return strings.TrimSpace(string(out))
}

// printTimes prints a line of medians per task; the parts need not add up.
func printTimes(w io.Writer, shape string, tasks int, name string, once []onceTimes, steady []time.Duration) {
	per := func(part func(t onceTimes) time.Duration) string {
		var all []time.Duration
		for _, t := range once {
			all = append(all, part(t))
		}
		return perTask(all, tasks)
	}
	compile := ""
	if steady != nil { // StarPU compiles nothing, and has no steady replay
		compile = per(func(t onceTimes) time.Duration { return t.compile })
	}
	fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s | %s |\n", shape, tasks, name,
		per(func(t onceTimes) time.Duration { return t.total }), per(func(t onceTimes) time.Duration { return t.build }),
		compile, per(func(t onceTimes) time.Duration { return t.run }),
		perTask(steady, tasks))
}

// perTask is the median in nanoseconds per task, empty for no times.
func perTask(times []time.Duration, tasks int) string {
	if len(times) == 0 {
		return ""
	}
	slices.Sort(times)
	return strconv.Itoa(int(times[len(times)/2].Nanoseconds()) / tasks)
}
