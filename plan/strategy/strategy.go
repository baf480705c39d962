package strategy

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"dahl/dag"
	"dahl/naming"
	"dahl/plan/pipeline"
	"dahl/platform"
	"dahl/schedule"
)

// Strategy is a published way to place tasks, with arguments. It is a policy.
type Strategy struct {
	doc       schedule.Doc
	Arguments []string // what the numbers after the name are; all may be left out together
	Says      string   // what the cost model counts
	numbers   []int
	place     func(*network, []int) (*Model, error)

	mutex *sync.Mutex
	last  *schedule.Problem // of which the model is
	model *Model
	err   error
}

// Model is a plan as the cost model of a paper sees it.
type Model struct {
	Seconds     float64 // per mini-batch
	Stages      []Stage // in their order
	Minibatches int     // in a step
	workers     []platform.WorkerID
}

// Stage is the layers of some devices.
type Stage struct {
	Name    string   `json:"name"` // of its first layer and of its last
	Layers  int      `json:"layers"`
	On      []string `json:"on"`      // workers
	Seconds float64  `json:"model_s"` // per mini-batch
}

// table has a line for each strategy.
var table = []Strategy{pipeDream, placement}

// All lists the strategies, without arguments.
func All() (all []*Strategy) {
	for i := range table {
		of := table[i]
		of.mutex = &sync.Mutex{}
		all = append(all, &of)
	}
	return all
}

// ByName finds a strategy by its name, with numbers behind a colon: "pipedream:4", or "x:4x8" for one with two.
func ByName(name string) (*Strategy, error) {
	first, numbers, with := strings.Cut(name, ":")
	of, err := naming.Find("strategy", first, All(), func(s *Strategy) string { return s.doc.Name })
	if err != nil || !with {
		return of, err
	}
	list := strings.Split(numbers, "x")
	for _, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || len(list) != len(of.Arguments) {
			return nil, fmt.Errorf("strategy %q: want %s", name, of.Form())
		}
		of.numbers = append(of.numbers, n)
	}
	of.doc.Name = name
	return of, nil
}

// Form is the name with its arguments, as in "pipedream or pipedream:WORKERS".
func (s *Strategy) Form() string {
	name, _, _ := strings.Cut(s.doc.Name, ":")
	if len(s.Arguments) == 0 {
		return name
	}
	numbers := make([]string, len(s.Arguments))
	for i, what := range s.Arguments {
		numbers[i] = strings.ToUpper(what)
	}
	return name + " or " + name + ":" + strings.Join(numbers, "x")
}

// Doc describes the strategy.
func (s *Strategy) Doc() schedule.Doc { return s.doc }

// Plan places the tasks as the strategy does, and lets steps overlap where the graph allows.
func (s *Strategy) Plan(p *schedule.Problem) (*schedule.Plan, error) {
	model, err := s.Model(p)
	if err != nil {
		return nil, err
	}
	m, err := pipeline.New(p)
	if err != nil {
		return nil, err
	}
	plan := m.Plan(model.workers, pipeline.Stretched)
	plan.Policy = s.doc.Name
	return plan, nil
}

// Model is the plan for a problem in the eyes of the paper.
func (s *Strategy) Model(p *schedule.Problem) (*Model, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.last == nil || s.last.Graph != p.Graph || s.last.Platform != p.Platform || s.last.Costs != p.Costs {
		s.last = p
		s.model, s.err = s.find(p)
	}
	return s.model, s.err
}

func (s *Strategy) find(p *schedule.Problem) (*Model, error) {
	n, err := newNetwork(p)
	if err != nil {
		return nil, err
	}
	model, err := s.place(n, s.numbers)
	if err != nil {
		return nil, err
	}
	model.Minibatches = n.batch
	for t, w := range model.workers {
		if !n.fit.CanRun(dag.TaskID(t), w) {
			return nil, fmt.Errorf("task %q would go to worker %q, %s", p.Graph.Tasks[t].Name, p.Platform.Workers[w].Name, n.fit.Refusal(dag.TaskID(t), w))
		}
	}
	return model, nil
}
