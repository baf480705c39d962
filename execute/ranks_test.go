package execute

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"dahl/dag"
	"dahl/execute/mpi"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule/audit"
)

// mailboxes are the messages between ranks of one process.
type mailboxes struct {
	mu    sync.Mutex
	mail  map[route][]*letter
	moved int // bytes of moves before and after runs
	left  int // of the messages with data that are looked at, until a process is killed, if it was positive
	gone  bool
}

type route struct{ from, to, tag int }

// letter is a message that is sent, received, or both.
type letter struct {
	tag  int
	b    []byte // of the sender, and its copy once nobody may touch them any more
	to   []byte
	done bool
}

// testPort is one rank's end. A message that was received is done at a later look, at random.
type testPort struct {
	*mailboxes
	rank, size int
	rng        *rand.Rand
	requests   map[mpi.Request]*letter
	next       mpi.Request
}

func (p *testPort) Rank() int                { return p.rank }
func (p *testPort) Size() int                { return p.size }
func (p *testPort) Alloc(bytes int64) []byte { return make([]byte, bytes) }
func (p *testPort) Abort()                   {}
func (p *testPort) Outlives() bool           { return false }
func (p *testPort) Shrink() error            { return nil }
func (p *testPort) Close() error             { return nil }

var errKilled = errors.New("killed")

func (p *testPort) post(r route, b []byte, sends bool) (mpi.Request, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, errKilled
	}
	// The first letter that lacks this end is its.
	var l *letter
	for _, other := range p.mail[r] {
		if sends && other.b == nil || !sends && other.to == nil {
			l = other
			break
		}
	}
	if l == nil {
		l = &letter{tag: r.tag}
		p.mail[r] = append(p.mail[r], l)
	}
	if sends {
		if r.tag == moveTag {
			p.moved += len(b)
		}
		l.b = b[:len(b):len(b)]
		if b == nil {
			l.b = []byte{}
		}
	} else if l.to = b; b == nil {
		l.to = []byte{}
	}
	p.next++
	p.requests[p.next] = l
	return p.next, nil
}

func (p *testPort) Send(to, tag int, b []byte) (mpi.Request, error) {
	return p.post(route{p.rank, to, tag}, b, true)
}

func (p *testPort) Receive(from, tag int, b []byte) (mpi.Request, error) {
	return p.post(route{from, p.rank, tag}, b, false)
}

func (p *testPort) Done(r mpi.Request) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return false, errKilled
	}
	l := p.requests[r]
	if p.left > 0 && l.tag != controlTag {
		p.left--
		p.gone = p.left == 0
	}
	if l.b == nil || l.to == nil || p.rng.IntN(3) == 0 {
		return false, nil
	}
	if !l.done {
		if len(l.b) > len(l.to) {
			return false, fmt.Errorf("%d bytes for room of %d", len(l.b), len(l.to))
		}
		copy(l.to, l.b)
		l.done = true
	}
	delete(p.requests, r)
	return true, nil
}

// together calls f as each of several ranks.
func together(t *testing.T, size int, seed uint64, f func(n *Ranks) error) {
	t.Helper()
	for rank, err := range ranksWith(&mailboxes{}, size, seed, f) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// ranksWith returns the error of each rank.
func ranksWith(boxes *mailboxes, size int, seed uint64, f func(n *Ranks) error) []error {
	boxes.mail = map[route][]*letter{}
	var all sync.WaitGroup
	failed := make([]error, size)
	for rank := range size {
		all.Go(func() {
			n, err := Join(mpi.Launch{Rank: rank, Size: size, LocalRank: rank, LocalSize: size}, func(l mpi.Launch) (mpi.Port, error) {
				return &testPort{mailboxes: boxes, rank: l.Rank, size: l.Size, rng: rand.New(rand.NewPCG(seed, uint64(l.Rank))), requests: map[mpi.Request]*letter{}}, nil
			})
			if err == nil {
				err = n.Agree(nil, nil)
				if err == nil {
					err = f(n)
				}
				err = n.Close(err)
			}
			failed[rank] = err
		})
	}
	all.Wait()
	return failed
}

// nodes are machines of one or two cores each, on one network.
func nodes(t *testing.T, cores ...int) *platform.Platform {
	t.Helper()
	p := &platform.Platform{Name: "nodes", Links: []platform.Link{{Name: "net", BandwidthBytesPerSec: 1e9}}}
	for i, n := range cores {
		p.Nodes = append(p.Nodes, platform.Node{Name: fmt.Sprintf("n%d", i)})
		p.Memories = append(p.Memories, platform.Memory{Name: fmt.Sprintf("n%d.host", i), BandwidthBytesPerSec: 1e10, Node: platform.NodeID(i)})
		p.Devices = append(p.Devices, platform.Device{Name: fmt.Sprintf("n%d.cpu", i), Kind: platform.CPU, Count: n, Memory: platform.MemoryID(i), FlopsPerSec: map[string]float64{"float32": 1e9}})
		for j := range i {
			p.Routes = append(p.Routes, platform.Route{From: platform.MemoryID(j), To: platform.MemoryID(i), Links: []platform.LinkID{0}})
		}
	}
	must.Do(t, p.Complete())
	return p
}

// TestRandomPlansOnRanks: whatever is put on which node, the weights are those of one core, in runs that are recorded and in others.
func TestRandomPlansOnRanks(t *testing.T) {
	const steps, seeds = 5, 8
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 41))
		var cores []int
		for range 2 + rng.IntN(2) {
			cores = append(cores, 1+rng.IntN(2))
		}
		opt := how{Platform: nodes(t, cores...), Variant: "go"}
		for _, g := range prog.Graphs {
			opt.Plans = append(opt.Plans, randomPlanOn(g, opt.Platform, rng))
		}
		for _, record := range []bool{true, false} {
			together(t, len(cores), seed, func(n *Ranks) error { return trainRank(t, prog, opt, n, steps, record, want) })
		}
	}
}

// TestLostAtAnyMessage: whichever message with data is the first that a library has lost with its rank, what ends the training says so, and it may go on without.
func TestLostAtAnyMessage(t *testing.T) {
	const steps = 2
	prog := testProgram(t)
	want := trained(t, prog, how{Platform: machine(t, 1), Policy: "heft", Variant: "go"}, steps)
	before := runtime.NumGoroutine()
	opt := how{Platform: nodes(t, 1, 1), Variant: "go"}
	rng := rand.New(rand.NewPCG(3, 43))
	for _, g := range prog.Graphs {
		opt.Plans = append(opt.Plans, randomPlanOn(g, opt.Platform, rng))
	}
	for messages := 1; ; messages += 1 + messages/4 {
		boxes := &mailboxes{left: messages}
		for rank, err := range ranksWith(boxes, 2, uint64(messages), func(n *Ranks) error { return trainRank(t, prog, opt, n, steps, false, want) }) {
			if boxes.gone && !Lost(err) {
				t.Errorf("lost at message %d, rank %d: %v", messages, rank, err)
			}
		}
		if !boxes.gone {
			break
		}
	}
	waitForGoroutines(t, before)
}

// trainRank trains as trained and unrecorded do.
func trainRank(t *testing.T, prog *dag.Program, opt how, n *Ranks, steps int, record bool, want string) error {
	opt.Hooks, opt.Ranks = testHooks(nil), n
	r, err := newOn(prog, opt)
	if err != nil {
		return err
	}
	defer r.Close()
	initialise(r)
	if n.Rank > 0 {
		return r.Serve(nil)
	}
	for _, run := range [][2]int{{0, steps}, {1, 2}, {0, 2}} {
		s, err := r.Run(context.Background(), run[0], run[1], record)
		if err != nil {
			return err
		}
		if !record {
			continue
		}
		if err := audit.Check(s, r.Problem(run[0], run[1])); err != nil {
			t.Error(err)
		}
	}
	if got := weights(r); got != want {
		t.Errorf("recorded %t: the weights differ from those of one core", record)
	}
	return nil
}

// TestAny: all ranks learn whether one says yes. One that has failed says no word, and the others learn of that when they agree.
func TestAny(t *testing.T) {
	for _, yes := range []int{-1, 0, 2} {
		together(t, 3, 7, func(n *Ranks) error {
			any, err := n.Any(n.Rank == yes)
			if any != (yes >= 0) {
				t.Errorf("rank %d: %v where rank %d says yes", n.Rank, any, yes)
			}
			return err
		})
	}
}
