package execute

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"time"

	"dahl/execute/driver"
	"dahl/schedule"
	"dahl/schedule/place"
)

// outcome is a rank's report to rank 0 of a run.
type outcome struct {
	First, Middle, Last time.Duration // as in progress
	Spans               [][]schedule.Span
	Changes             []schedule.Change
}

// Tell gives the other ranks a note with each run from now on, see [Options].
func (r *Runner) Tell(note []byte) { r.note = note }

// command tells the other ranks to take part in a job, and gives them a note.
func (n *Ranks) command(j *job, note []byte) error {
	kind := entryRun
	if j.record {
		kind = entryRecordedRun
		if err := n.alignClocks(); err != nil {
			return err
		}
	}
	return n.do(func() error {
		begin := time.Since(n.origin)
		j.base, j.sequence = n.origin.Add(begin), n.sequence+1
		n.stamp = j.sequence
		for p := range n.others {
			p.send(entry{Kind: kind, Lane: int32(j.graph.index), Value: int64(j.steps), At: int64(begin)})
			p.sendText(entryText, string(note))
		}
		return nil
	})
}

// Serve does this rank's part of rank 0's runs, until rank 0 leaves or something fails. Rank 0 gets the values of report from [Ranks.Reports].
func (r *Runner) Serve(report func() any) error {
	n := r.opt.Ranks
	for {
		var e received
		err := n.do(func() error {
			return n.until(func() (bool, error) {
				if len(n.commands) > 0 {
					e, n.commands = n.commands[0], n.commands[1:]
					return true, nil
				}
				return n.peers[0].left, nil
			})
		})
		if err != nil || e.from == nil {
			return err
		}
		if e.Kind == entryReport {
			err = n.report(report())
		} else {
			err = r.follow(e)
		}
		if err != nil {
			n.do(func() error { n.fail(err); return nil })
			return err
		}
	}
}

// report sends rank 0 a value.
func (n *Ranks) report(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return n.do(func() error {
		n.peers[0].sendText(entryText, string(text))
		return nil
	})
}

// Reports gives rank 0 what the other ranks report, in their order, as JSON. They serve meanwhile.
func (n *Ranks) Reports() (all [][]byte, err error) {
	err = n.do(func() error {
		for p := range n.others {
			p.send(entry{Kind: entryReport})
		}
		for p := range n.others {
			text, err := n.take(p)
			if err != nil {
				return err
			}
			all = append(all, text)
		}
		return nil
	})
	return all, err
}

// follow does this rank's part of one run.
func (r *Runner) follow(e received) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.opt.Ranks
	var note []byte
	err := n.do(func() (err error) {
		note, err = n.take(n.peers[0])
		return err
	})
	if err == nil && r.opt.Told != nil {
		err = r.opt.Told(int(e.Lane), int(e.Value), note)
	}
	if err != nil {
		return err
	}
	j, _, err := r.newJob(int(e.Lane), int(e.Value), e.Kind == entryRecordedRun)
	if err != nil {
		return err
	}
	j.base, j.sequence, j.grants = n.moment(time.Duration(e.At)), e.sequence, len(r.lanes)
	if err := r.do(j); err != nil {
		return err
	}
	if failure := j.failure.Load(); failure != nil {
		return *failure
	}
	all := r.progress()
	o := outcome{First: all.first, Middle: all.middle, Last: all.last}
	if j.record {
		o.Spans, o.Changes = r.logs(j)
	}
	var text bytes.Buffer
	if err := gob.NewEncoder(&text).Encode(&o); err != nil {
		return err
	}
	return n.do(func() error {
		n.peers[0].sendText(entryText, text.String())
		return nil
	})
}

// outcomes takes the reports of the other ranks.
func (n *Ranks) outcomes() (all []outcome, err error) {
	err = n.do(func() error {
		for p := range n.others {
			text, err := n.take(p)
			if err != nil {
				return err
			}
			var o outcome
			if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&o); err != nil {
				return fmt.Errorf("rank %d: its part of the run: %w", p.rank, err)
			}
			all = append(all, o)
		}
		return nil
	})
	return all, err
}

// wiredMove is a move from node to node before the first or after the last step.
type wiredMove struct {
	half
	peer  int
	sends bool
}

// wiredMove is this rank's end of a move between nodes. Nil means that it has none.
func (r *Runner) wiredMove(m *place.Move, copies []driver.Copy) *wiredMove {
	switch {
	case !r.part.crosses(m):
		return nil
	case r.part.mine(m.From):
		return &wiredMove{halfOf(copies, true), r.part.ranks[m.To], true}
	case r.part.mine(m.To):
		return &wiredMove{halfOf(copies, false), r.part.ranks[m.From], false}
	}
	return nil
}

// move makes a move between this rank and another.
func (n *Ranks) move(w *wiredMove) error {
	return n.do(func() error {
		b := w.whole
		if b == nil {
			b = n.moving.room(n.port, w.bytes)
		}
		start := n.receiveAll
		if w.sends {
			start = n.sendAll
			if w.whole == nil {
				w.gather(b)
			}
		}
		if err := start(w.peer, moveTag, b, &n.moving.under); err != nil {
			return err
		}
		err := n.until(func() (bool, error) {
			err := n.forgetDone(&n.moving.under)
			return len(n.moving.under) == 0, err
		})
		if err == nil && !w.sends && w.whole == nil {
			w.scatter(b)
		}
		return err
	})
}
