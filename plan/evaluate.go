package plan

import (
	"context"
	"slices"
	"sync"
	"time"

	"dahl/dag"
	"dahl/energy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/simulate"
)

// Evaluated is a choice for a priced program with all that follows from it: the decision, simulated runs of its graphs, and the
// time and joules of a step. Each of them is computed when it is first asked for, and once. Goroutines may share it.
type Evaluated struct {
	Decision *schedule.Decision

	mutex sync.Mutex
	runs  map[graphRun]Accounted
	steps map[stepRun]Step
}

// graphRun is a run of some steps of a graph without a barrier between them.
type graphRun struct {
	graph, steps int
	timed        bool
}

// stepRun is the way in which a step was simulated.
type stepRun struct {
	steady, timeOnly bool
	steps            int
}

// Step is the time and the joules of one step.
type Step struct {
	Time   time.Duration
	Joules float64
}

// Evaluate makes the decisions of a choice.
func Evaluate(priced *schedule.Priced, choice schedule.Choice) (*Evaluated, error) {
	d, err := priced.Decide(choice)
	if err != nil {
		return nil, err
	}
	return &Evaluated{Decision: d, runs: map[graphRun]Accounted{}, steps: map[stepRun]Step{}}, nil
}

// Plan is the plan of the first graph; nil means a policy decides while it runs.
func (e *Evaluated) Plan() *schedule.Plan { return e.Decision.Graphs[0].Plan }

// Simulate runs steps of a graph and integrates their power. Timed says that the tasks are timed as in an execution. The
// schedule is kept.
func (e *Evaluated) Simulate(ctx context.Context, graph, steps int, timed bool) (Accounted, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	key := graphRun{graph, steps, timed}
	if a, ok := e.runs[key]; ok {
		return a, nil
	}
	a, err := account(ctx, e.Decision, graph, steps, simulate.Options{Timed: timed})
	if err == nil {
		e.runs[key] = a
	}
	return a, err
}

// account simulates steps of a graph and integrates their power.
func account(ctx context.Context, d *schedule.Decision, graph, steps int, opt simulate.Options) (Accounted, error) {
	s, err := simulate.Run(ctx, d, graph, steps, opt)
	if err != nil {
		return Accounted{}, err
	}
	report, err := energy.FromSchedule(s, d.Problem(graph, steps, false))
	return Accounted{Schedule: s, Report: report, Overlaps: d.Graphs[graph].Overlaps()}, err
}

// Step returns the time and joules of a step of the first graph: one that runs alone, or a steady one. A steady step is the
// mean addition of some steps to as many before them: the difference of two runs, over their difference in steps. It is no
// shorter than what a worker has to do: where others catch up, a run grows by less.
func (e *Evaluated) Step(ctx context.Context, steady bool, steps int) (Step, error) {
	return e.step(ctx, stepRun{steady: steady, steps: steps})
}

// StepTime is the time of [Evaluated.Step], whose joules are not integrated.
func (e *Evaluated) StepTime(ctx context.Context, steady bool, steps int) (time.Duration, error) {
	step, err := e.step(ctx, stepRun{steady: steady, steps: steps, timeOnly: true})
	return step.Time, err
}

func (e *Evaluated) step(ctx context.Context, of stepRun) (Step, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if step, ok := e.steps[of]; ok {
		return step, nil
	}
	step, err := e.stepOf(ctx, of, simulate.Options{})
	if err == nil {
		e.steps[of] = step
	}
	return step, err
}

// DrawnStep is [Evaluated.Step] with durations that are scaled, see [Draw].
func (e *Evaluated) DrawnStep(ctx context.Context, steady bool, steps int, scale func(dag.Instance, platform.WorkerID) float64) (Step, error) {
	return e.stepOf(ctx, stepRun{steady: steady, steps: steps}, simulate.Options{Scale: scale})
}

func (e *Evaluated) stepOf(ctx context.Context, of stepRun, opt simulate.Options) (step Step, err error) {
	runs := []int{1}
	if of.steady {
		runs = []int{of.steps, 2 * of.steps}
	}
	opt.TimesOnly = true
	var before *schedule.Schedule
	for _, n := range runs {
		s, err := simulate.Run(ctx, e.Decision, 0, n, opt)
		if err != nil {
			return Step{}, err
		}
		if step.Time = s.Makespan; before != nil {
			step.Time = e.prolonged(before, s)
			s.Makespan = before.Makespan + step.Time // all devices idle on until then
		}
		if before = s; of.timeOnly {
			continue
		}
		joules, err := energy.Joules(s, e.Decision.Problem(0, n, false))
		if err != nil {
			return Step{}, err
		}
		step.Joules = joules - step.Joules
	}
	if of.steady {
		step = Step{step.Time / time.Duration(of.steps), step.Joules / float64(of.steps)}
	}
	return step, nil
}

// prolonged is by how much a run is longer than one of fewer steps, or by how much more a worker of a plan has to do in it where
// that is more.
func (e *Evaluated) prolonged(short, long *schedule.Schedule) time.Duration {
	by := long.Makespan - short.Makespan
	if e.Plan() == nil {
		return by
	}
	more := make([]time.Duration, len(e.Decision.Priced.Platform.Workers))
	for i := range short.Spans {
		more[short.Spans[i].Worker] -= short.Spans[i].End - short.Spans[i].Start
	}
	for i := range long.Spans {
		more[long.Spans[i].Worker] += long.Spans[i].End - long.Spans[i].Start
	}
	return max(by, slices.Max(more))
}

// Evaluator keeps what was evaluated, so that a search, its explanation and its result share it. It forgets all when that
// becomes too much. The zero value is empty; goroutines may share it.
type Evaluator struct {
	mutex sync.Mutex
	known map[evaluation]*Evaluated
	tasks int // of all that are kept
}

// evaluation is the key of an evaluation: a plan of a priced program, or the plan that a policy makes of it. Both are
// immutable, so that one
// address stands for one content.
type evaluation struct {
	priced *schedule.Priced
	plan   *schedule.Plan
	policy string
	steady bool // of the run from which a policy's plan is taken
}

// mostKept bounds the tasks of the decisions that are kept, some hundred bytes each.
const mostKept = 200_000

// Plan evaluates a plan of the first graph of a program.
func (v *Evaluator) Plan(priced *schedule.Priced, plan *schedule.Plan) (*Evaluated, error) {
	key := evaluation{priced: priced, plan: plan}
	if e := v.get(key); e != nil {
		return e, nil
	}
	e, err := Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{plan}})
	if err == nil {
		v.keep(e, key)
	}
	return e, err
}

// onlineSteps is how many steady steps of a policy that decides while it runs are simulated: [schedule.PlanFrom] takes the one in the middle.
const onlineSteps = 5

// Policy evaluates the plan that a policy makes of the first graph of a program; nil means it makes none. For a policy that decides
// while it runs, the plan comes from a run.
func (v *Evaluator) Policy(ctx context.Context, priced *schedule.Priced, policy schedule.Policy, steady bool) (*Evaluated, error) {
	name := policy.Doc().Name
	key := evaluation{priced: priced, policy: name, steady: steady}
	if e := v.get(key); e != nil {
		return e, nil
	}
	e, err := Evaluate(priced, schedule.Choice{Policy: policy})
	if err != nil {
		return nil, nil // it cannot plan for this program
	}
	if e.Plan() == nil {
		steps := 1
		if steady {
			steps = onlineSteps
		}
		ran, err := simulate.Run(ctx, e.Decision, 0, steps, simulate.Options{})
		if err != nil {
			return nil, ctx.Err()
		}
		made := schedule.PlanFrom(ran, name, e.Decision.Graphs[0].Problem.Graph)
		if e, err = Evaluate(priced, schedule.Choice{Plans: []*schedule.Plan{made}}); err != nil {
			return nil, err
		}
	}
	v.keep(e, key, evaluation{priced: priced, plan: e.Plan()})
	return e, nil
}

func (v *Evaluator) get(key evaluation) *Evaluated {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.known[key]
}

// keep keeps an evaluation under some names.
func (v *Evaluator) keep(e *Evaluated, names ...evaluation) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	tasks := len(e.Decision.Priced.Program.Graphs[0].Tasks)
	if v.tasks += tasks; v.known == nil || v.tasks > mostKept {
		v.known, v.tasks = map[evaluation]*Evaluated{}, tasks
	}
	for _, name := range names {
		v.known[name] = e
	}
}
