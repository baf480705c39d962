package execute

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"dahl/execute/mpi"
	"dahl/schedule/layout"
)

// Fact is something that all ranks have to have alike, and its hash.
type Fact struct{ What, Hash string }

// prepared is the state of a rank before the first step.
type prepared struct {
	Facts  []Fact
	Failed string // why it cannot take part; empty means that it can
	Shared []byte // by rank 0 with all
}

// Agree ends the preparation of all ranks: it compares their facts with rank 0's, and refuses the first rank that has others. A rank has failed
// with the error given here. Rank 0 returns the reason, and the others return that rank 0 has one.
func (n *Ranks) Agree(facts []Fact, failed error) error {
	n.agreed = true
	return n.do(func() error {
		if n.Rank > 0 {
			return n.tell(facts, failed)
		}
		refused := failed
		for p := range n.others {
			theirs, err := n.take(p)
			if err != nil {
				return err
			}
			if refused == nil {
				refused = differs(p.rank, facts, theirs)
			}
		}
		verdict := ""
		if refused != nil {
			verdict = refused.Error()
		}
		for p := range n.others {
			p.sendText(entryText, verdict)
		}
		return refused
	})
}

// Share gives the others a value of rank 0, or says that it failed to get one. At rank 0 it returns that failure.
func (n *Ranks) Share(value any, failed error) error {
	return n.do(func() error {
		var all prepared
		if n.Rank > 0 {
			text, err := n.take(n.peers[0])
			if err == nil {
				err = json.Unmarshal(text, &all)
			}
			if err != nil {
				return err
			}
			if all.Failed != "" {
				return &rankError{0, all.Failed, false}
			}
			return json.Unmarshal(all.Shared, value)
		}
		var err error
		if failed != nil {
			all.Failed = failed.Error()
		} else if all.Shared, err = json.Marshal(value); err != nil {
			return err
		}
		text, err := json.Marshal(&all)
		if err != nil {
			return err
		}
		for p := range n.others {
			p.sendText(entryText, string(text))
		}
		return failed
	})
}

// The answers to [Ranks.Any].
const yes, no = "yes", "no"

// Any reports whether some rank says so. A rank that has failed meanwhile comes to [Ranks.Agree] instead, and has no part in the answer.
func (n *Ranks) Any(mine bool) (any bool, err error) {
	said := map[bool]string{true: yes, false: no}
	err = n.do(func() error {
		if n.Rank > 0 {
			n.peers[0].sendText(entryText, said[mine])
			text, err := n.take(n.peers[0])
			if any = string(text) == yes; err == nil && !any && string(text) != no {
				err = &rankError{0, string(text), false}
			}
			return err
		}
		any = mine
		var asked []*peer
		for p := range n.others {
			text, err := n.take(p)
			if err != nil {
				return err
			}
			if answer := string(text); answer == yes || answer == no {
				any, asked = any || answer == yes, append(asked, p)
			} else {
				p.arrived = slices.Insert(p.arrived, 0, text)
			}
		}
		for _, p := range asked {
			p.sendText(entryText, said[any])
		}
		return nil
	})
	return any, err
}

// tell is the part of a rank other than rank 0 in Agree.
func (n *Ranks) tell(facts []Fact, failed error) error {
	mine := prepared{Facts: facts}
	if failed != nil {
		mine.Failed = failed.Error()
	}
	text, err := json.Marshal(&mine)
	if err != nil {
		return err
	}
	n.peers[0].sendText(entryText, string(text))
	verdict, err := n.take(n.peers[0])
	if err == nil && len(verdict) > 0 {
		err = &rankError{0, string(verdict), false}
	}
	return err
}

// differs names the first fact of which a rank has another one.
func differs(rank int, ours []Fact, text []byte) error {
	var theirs prepared
	switch err := json.Unmarshal(text, &theirs); {
	case err == nil && theirs.Failed != "":
		return fmt.Errorf("rank %d: %s", rank, theirs.Failed)
	case err != nil || len(theirs.Facts) != len(ours):
		return fmt.Errorf("rank %d runs another program than rank 0; start the same one on every node", rank)
	}
	for i, f := range ours {
		if theirs.Facts[i] != f {
			return fmt.Errorf("rank %d has another %s than rank 0 (%.12s and %.12s); start the same program with the same files on every node", rank, f.What, theirs.Facts[i].Hash, f.Hash)
		}
	}
	return nil
}

// PlanHash is a hash of what is run: the graphs, the lists of all lanes, and the sizes of all memories.
func (r *Runner) PlanHash() string {
	h := sha256.New()
	for _, c := range r.graphs {
		fmt.Fprintln(h, c.graph.Hash(), len(c.order))
		for _, list := range c.order {
			binary.Write(h, binary.LittleEndian, int64(len(list))) // a hash takes everything
			binary.Write(h, binary.LittleEndian, list)
		}
		for _, l := range c.layouts {
			fmt.Fprintln(h, l.ArenaBytes[:layout.NumArenas])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// lostError is an error of a message: the rank at its other end was lost.
type lostError struct{ error }

func (e *lostError) Error() string { return fmt.Sprintf("a rank was lost: %v", e.error) }

func (e *lostError) Unwrap() error { return e.error }

// losing is a port whose messages fail because a rank was lost.
type losing struct{ mpi.Port }

func (p losing) Send(to, tag int, b []byte) (mpi.Request, error) {
	r, err := p.Port.Send(to, tag, b)
	return r, lost(err)
}

func (p losing) Receive(from, tag int, b []byte) (mpi.Request, error) {
	r, err := p.Port.Receive(from, tag, b)
	return r, lost(err)
}

func (p losing) Done(r mpi.Request) (bool, error) {
	done, err := p.Port.Done(r)
	return done, lost(err)
}

func lost(err error) error {
	if err == nil {
		return nil
	}
	return &lostError{err}
}

// Lost reports whether an error says that a rank was lost.
func Lost(err error) bool {
	if of := (*rankError)(nil); errors.As(err, &of) {
		return of.lost
	}
	return errors.As(err, new(*lostError))
}

// Outlives reports whether [Ranks.Shrink] can leave lost ranks behind.
func (n *Ranks) Outlives() bool { return n.port.Outlives() }

// Shrink leaves lost ranks behind, and returns which of the ranks before are left. Each of these calls it.
func (n *Ranks) Shrink() (left []int, err error) {
	before, size := n.Rank, n.Size
	done := make(chan struct{})
	n.begin(func() {
		defer close(done)
		if err = n.port.Shrink(); err != nil {
			return
		}
		n.Rank, n.Size = n.port.Rank(), n.port.Size()
		n.failed, n.agreed, n.run, n.peers = nil, false, nil, nil
		n.early, n.commands, n.moving = nil, nil, text{}
		n.sequence, n.stamp = 0, 0
		err = n.listen()
	})
	<-done
	if err == nil && n.Size == size {
		err = errors.New("the library has lost none")
	}
	if err != nil {
		return nil, err
	}
	machine, _ := os.Hostname() // a machine without a name has none here
	all, err := n.seats(seat{before, machine})
	if err != nil {
		return nil, err
	}
	n.place.LocalRank, n.place.LocalSize = 0, 0
	for rank, s := range all {
		left = append(left, s.Before)
		if s.Machine == machine {
			n.place.LocalSize++
			if rank < n.Rank {
				n.place.LocalRank++
			}
		}
	}
	return left, n.alignClocks()
}

// seat is a rank that is left: which one it was before, and its machine.
type seat struct {
	Before  int
	Machine string
}

// seats gives all ranks the seats of all.
func (n *Ranks) seats(mine seat) (all []seat, err error) {
	if n.Rank > 0 {
		if err = n.report(mine); err == nil {
			err = n.Share(&all, nil)
		}
		return all, err
	}
	all = []seat{mine}
	err = n.do(func() error {
		for p := range n.others {
			text, err := n.take(p)
			var s seat
			if err == nil {
				err = json.Unmarshal(text, &s)
			}
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		return nil
	})
	return all, n.Share(&all, err)
}
