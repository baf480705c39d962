package execute

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"unsafe"

	"dahl/dag"
	"dahl/platform"
	"dahl/schedule/layout"
	"dahl/schedule/place"
)

// bindStates prepares what the nodes begin a run with. A placed graph takes for granted that the host memory of every node has it. It comes from
// rank 0, where the run before has left it.
func (r *Runner) bindStates(c *compiledGraph) error {
	for rank := 1; r.opt.Ranks != nil && rank < r.opt.Ranks.Size; rank++ {
		if r.part.rank != 0 && r.part.rank != rank {
			continue
		}
		host := r.platform.HostOf(platform.MemoryID(slices.Index(r.part.ranks, rank)))
		l := c.layouts[host]
		for i := range c.origin.Buffers {
			b := &c.origin.Buffers[i]
			if b.ViewOf != dag.None || b.Role != dag.Parameter && b.Role != dag.State || !place.AtEachHost(b) {
				continue
			}
			replica, ok := c.graph.BufferByName(place.ReplicaName(r.platform, b.Name, host))
			if !ok || l.Offset(replica) < 0 || l.Arena(replica) >= layout.StepArena {
				continue
			}
			w := &wiredMove{peer: rank, sends: true}
			if r.part.rank == rank {
				w.peer, w.sends, w.whole = 0, false, r.arenas.storage(l, c.graph, replica, 0)
			} else if all := r.Bytes(b.Name); all != nil {
				first, end := c.placed.RowsIn(dag.BufferID(i), host)
				w.whole = all[first:end]
			} else {
				return fmt.Errorf("%q is carried from step to step and has no place on the first node", b.Name)
			}
			c.states = append(c.states, w)
		}
	}
	return nil
}

// sendStates brings the states of rank 0 to the other ranks. Each of them says the hashes of its own, and gets the states that differ.
func (n *Ranks) sendStates(states []*wiredMove) error {
	hashes := hashesOf(states)
	for len(states) > 0 {
		of := states // of one rank
		if end := slices.IndexFunc(states, func(w *wiredMove) bool { return w.peer != of[0].peer }); end > 0 {
			of = states[:end]
		}
		differ, err := n.differing(n.peers[of[0].peer], hashes[:len(of)*sha256.Size], of[0].sends)
		if err != nil {
			return err
		}
		for i, w := range of {
			if differ[i] == 0 {
				continue
			}
			if err := n.move(w); err != nil {
				return err
			}
		}
		states, hashes = states[len(of):], hashes[len(of)*sha256.Size:]
	}
	return nil
}

// differing has 1 for each state of which a rank and rank 0 have other bytes. Rank 0, the sender, tells the rank.
func (n *Ranks) differing(p *peer, hashes []byte, sends bool) (differ []byte, err error) {
	err = n.do(func() error {
		if !sends {
			p.sendText(entryText, string(hashes))
			differ, err = n.take(p)
		} else {
			var theirs []byte
			if theirs, err = n.take(p); err == nil {
				differ = unlike(hashes, theirs)
				p.sendText(entryText, string(differ))
			}
		}
		if err == nil && len(differ)*sha256.Size != len(hashes) {
			err = fmt.Errorf("rank %d has other states than this one", p.rank)
		}
		return err
	})
	return differ, err
}

// unlike compares two lists of hashes: 1 where they differ, else 0. Lists of other lengths have no result.
func unlike(a, b []byte) (differ []byte) {
	for ; len(a) == len(b) && len(a) > 0; a, b = a[sha256.Size:], b[sha256.Size:] {
		if bytes.Equal(a[:sha256.Size], b[:sha256.Size]) {
			differ = append(differ, 0)
		} else {
			differ = append(differ, 1)
		}
	}
	return differ
}

// hashesOf are the hashes of states, one after another. Ranks that have the same bytes from rank 0 share one sum.
func hashesOf(states []*wiredMove) (all []byte) {
	type place struct {
		first *byte
		bytes int
	}
	known := map[place][sha256.Size]byte{}
	for _, w := range states {
		at := place{unsafe.SliceData(w.whole), len(w.whole)}
		sum, ok := known[at]
		if !ok {
			sum = sha256.Sum256(w.whole)
			known[at] = sum
		}
		all = append(all, sum[:]...)
	}
	return all
}
