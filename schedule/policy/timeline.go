package policy

import (
	"slices"
	"time"

	"dahl/dag"
)

// timeline lists the tasks or transfers of one worker or engine, by start, with the gaps between. It is a list of
// chunks: an insertion moves few slots, and a search skips the chunks whose gaps are too short.
type timeline struct {
	chunks []timelineChunk
	end    time.Duration // of the last slot
}

// timelineChunk is some neighbouring slots of a timeline, at least one.
type timelineChunk struct {
	slots []slotOf
	end   time.Duration // end of its last slot
	// widest is at least the longest gap before a slot of the chunk. It is lowered
	// when a search has seen them all.
	widest time.Duration
}

// maxTimelineChunk is the number of slots at which a chunk is split.
const maxTimelineChunk = 256

// slotOf is a task placed on a timeline.
type slotOf struct {
	start, end time.Duration
	task       dag.TaskID
}

// gapAt is a place in a timeline: before a slot of a chunk, or behind the last slot.
type gapAt struct{ chunk, slot int }

// gap finds the first gap from ready on that is at least takes long.
func (l *timeline) gap(ready, takes time.Duration) (start time.Duration, at gapAt) {
	if l.end <= ready { // mostly
		return ready, gapAt{len(l.chunks), 0}
	}
	first := endingAfter(l.chunks, ready, func(c *timelineChunk) time.Duration { return c.end })
	start = ready
	for k := first; k < len(l.chunks); k++ {
		c := &l.chunks[k]
		if c.widest < takes {
			start = c.end
			continue
		}
		slot := 0
		if k == first {
			slot = endingAfter(c.slots, ready, func(s *slotOf) time.Duration { return s.end })
		}
		seesAll := slot == 0 && start == l.endBefore(k)
		widest := time.Duration(0)
		for ; slot < len(c.slots); slot++ {
			s := &c.slots[slot]
			if start+takes <= s.start {
				return start, gapAt{k, slot}
			}
			widest = max(widest, s.start-start)
			start = max(start, s.end)
		}
		if seesAll {
			c.widest = widest
		}
	}
	return start, gapAt{len(l.chunks), 0}
}

// endBefore is when the last slot before a chunk ends.
func (l *timeline) endBefore(chunk int) time.Duration {
	if chunk == 0 {
		return 0
	}
	return l.chunks[chunk-1].end
}

// endingAfter is the place of the first of some slots or chunks that ends after a moment. It is mostly one of the last.
func endingAfter[T any](list []T, at time.Duration, end func(*T) time.Duration) int {
	lo, hi := 0, len(list)
	for step := 1; hi > 0; step *= 2 { // from the end in growing steps
		k := max(0, hi-step)
		if end(&list[k]) <= at {
			lo = k + 1
			break
		}
		hi = k
	}
	for lo < hi {
		k := (lo + hi) / 2
		if end(&list[k]) <= at {
			lo = k + 1
		} else {
			hi = k
		}
	}
	return lo
}

// insert puts a slot into a gap that was found since the last insertion.
func (l *timeline) insert(at gapAt, s slotOf) {
	if at.chunk == len(l.chunks) {
		l.append(s)
		return
	}
	c := &l.chunks[at.chunk]
	c.slots = slices.Insert(c.slots, at.slot, s)
	if len(c.slots) < maxTimelineChunk {
		return
	}
	half := len(c.slots) / 2
	back := timelineChunk{slots: append(make([]slotOf, 0, maxTimelineChunk), c.slots[half:]...), end: c.end, widest: c.widest}
	c.slots = c.slots[:half]
	c.end = c.slots[half-1].end
	l.chunks = slices.Insert(l.chunks, at.chunk+1, back)
}

// append adds a slot behind all others.
func (l *timeline) append(s slotOf) {
	last := len(l.chunks) - 1
	free := s.start - l.endBefore(last+1)
	if last < 0 || len(l.chunks[last].slots) == maxTimelineChunk-1 {
		l.chunks = append(l.chunks, timelineChunk{})
		last++
	}
	c := &l.chunks[last]
	c.slots, c.end, c.widest = append(c.slots, s), s.end, max(c.widest, free)
	l.end = s.end
}
