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

// Strategy is a published way to place a training on devices, with arguments. Of a graph it is a policy. Of a network it makes a lowering
// with stages, and products of such strategies are one, too.
type Strategy struct {
	doc       schedule.Doc
	Arguments []string // what the numbers after the name are
	Optional  bool     // all numbers may be left out together
	Words     []string // one of which may follow the numbers: ways to add gradients, or Stash
	Says      string   // what the cost model counts
	numbers   []int
	place     func(*network, []int) (*Model, error) // nil for a network
	split     func(numbers []int) Split             // nil for a graph
	Split     Split                                 // of a network, with numbers

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
var table = []Strategy{dataParallel, zero1, tensorParallel, spatial, oneWeirdTrick, megatron, gpipe, oneForwardOneBackward, interleaved, pipeDream, placement}

// All lists the strategies, without arguments.
func All() (all []*Strategy) {
	for i := range table {
		of := table[i]
		of.mutex = &sync.Mutex{}
		all = append(all, &of)
	}
	return all
}

// Line finds a line of the table.
func Line(name string) (*Strategy, error) {
	return naming.Find("strategy", name, All(), func(s *Strategy) string { return s.doc.Name })
}

// OfNetworks reports whether the strategy is for networks, and not for graphs.
func (s *Strategy) OfNetworks() bool { return s.split != nil }

// Times stands between the strategies of a product, and At before first layers of stages.
const Times, At = "+", "@"

// Stash is the word for a pipeline of mini-batches, each with an update of its own, whose stages keep older versions of the weights. It trains other numbers than all other
// strategies do, and no search takes it by itself.
const Stash = "stash"

// ByName finds a strategy by its name, with numbers behind a colon, such as "pipedream:4", or "1f1b:4x8" for one with two. It finds products of
// strategies of networks, too, such as "data-parallel:2:tree+1f1b:2x8". The first layers of the stages of a pipeline may follow, as in "1f1b:3x8@conv2,fc1".
func ByName(name string) (*Strategy, error) {
	numbers, from, given := strings.Cut(name, At)
	factors := strings.Split(numbers, Times)
	product, err := single(factors[0])
	if err != nil {
		return nil, err
	}
	for _, factor := range factors[1:] {
		by, err := single(factor)
		if err != nil {
			return nil, err
		}
		if product.split == nil || by.split == nil {
			return nil, fmt.Errorf("strategy %q: only strategies of networks have products", name)
		}
		if product.Split, err = product.Split.times(by.Split); err != nil {
			return nil, fmt.Errorf("strategy %q: %w", name, err)
		}
		product.doc.Sentence += "; and " + by.doc.Sentence
		product.doc.Paper += "; " + by.doc.Paper
		product.Says += "; " + by.Says
	}
	if s := &product.Split; given {
		if s.From = strings.Split(from, ","); len(s.From) != s.Stages*s.Each-1 {
			return nil, fmt.Errorf("strategy %q: %s names the first layers of all stages of a pipeline but the first one, with commas", name, At+from)
		}
	}
	product.doc.Name = name
	return product, nil
}

// maxNumber bounds each number, so that their products are numbers.
const maxNumber = 1 << 16

// single finds a strategy that is no product.
func single(name string) (*Strategy, error) {
	first, rest, with := strings.Cut(name, ":")
	of, err := Line(first)
	switch {
	case err != nil:
		return nil, err
	case !with && !of.Optional:
		return nil, fmt.Errorf("strategy %q: write %s", name, of.Form())
	case !with && of.split != nil:
		of.Split = of.split(make([]int, len(of.Arguments)))
		fallthrough
	case !with:
		return of, nil
	}
	numbers, word, more := strings.Cut(rest, ":")
	list := strings.Split(numbers, "x")
	for _, text := range list {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxNumber || len(list) != len(of.Arguments) || more && of.Words == nil {
			return nil, fmt.Errorf("strategy %q: write %s", name, of.Form())
		}
		of.numbers = append(of.numbers, n)
	}
	if of.split != nil {
		of.Split = of.split(of.numbers)
	}
	switch stashes := word == Stash && of.Split.Order != ""; {
	case stashes:
		of.Split.Stash = true
	case word == wholePositions && of.Split.Fold.Tensor > 0:
		of.Split.Fold.Whole = true
	case more && of.Split.Order != "":
		return nil, fmt.Errorf("strategy %q: write %s", name, of.Form())
	case more:
		if err := of.Split.Sum.UnmarshalText([]byte(word)); err != nil {
			return nil, fmt.Errorf("strategy %q: %w", name, err)
		}
		of.Split.Flat = of.Split.Sum == dag.Ring
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
	form := name + ":" + strings.Join(numbers, "x")
	if s.Words != nil {
		form += "[:" + strings.Join(s.Words, "|") + "]"
	}
	if s.Optional {
		form = name + " or " + form
	}
	return form
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
	if s.OfNetworks() {
		return nil, fmt.Errorf("strategy %s lowers a network, and a graph is lowered", s.doc.Name)
	}
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
