package certificate

import (
	"sync"

	"dahl/plan/problem"
	"dahl/schedule"
)

// Models makes models of a machine's sets of devices. Models of one graph share the data between its tasks, whose search takes
// most of the time and of the memory. Goroutines may use it at one time.
type Models struct {
	Steady bool

	mutex  sync.Mutex
	models map[string]func() (*Model, error) // the first of each graph, by its hash
}

// Of is the model of the first graph, with that hash, of a priced program.
func (s *Models) Of(c *schedule.Priced, hash string, o problem.Objective) (*Model, error) {
	s.mutex.Lock()
	first, ok := s.models[hash]
	if !ok {
		if s.models == nil {
			s.models = map[string]func() (*Model, error){}
		}
		first = sync.OnceValues(func() (*Model, error) { return NewModel(c, o, s.Steady) })
		s.models[hash] = first
	}
	s.mutex.Unlock()
	like, err := first()
	if err != nil {
		return NewModel(c, o, s.Steady) // it may be a device that c lacks
	}
	m, err := like.On(c)
	if err == nil {
		m.Objective = o
	}
	return m, err
}
