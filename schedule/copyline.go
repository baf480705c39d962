package schedule

import (
	"time"

	"dahl/platform"
)

// line is copies that take turns: those into a memory, or those out of it, or those in one
// direction of a link that they share. They are expected to end when they would one after
// the other, however many engines there are.
type line struct {
	p       *platform.Platform
	link    platform.LinkID  // noLink: a memory's
	waiting [2]time.Duration // what those take that wait for engines or room: the urgent and awaited ones, the early ones
	moving  int
	until   time.Duration // when those that move should have come
}

const noLink platform.LinkID = -1

// takes is how long a copy is in the line: an engine is kept for the whole of it, a link
// while its bytes pass. One of which nothing is left will not be made.
func (l *line) takes(f *flight) time.Duration {
	switch {
	case f.Bytes == 0:
		return 0
	case l.link == noLink:
		return l.p.RouteTime(f.From, f.To, f.Bytes)
	}
	return l.p.LinkTime(l.link, f.Bytes)
}

// lines are those that the copies of a way stand in.
type lines []*line

// free is when what stands in all of these lines should have come; or only what a worker
// waits for.
func (l lines) free(now time.Duration, urgent bool) time.Duration {
	at := now
	for _, line := range l {
		then := max(now, line.until) + line.waiting[0]
		if !urgent {
			then += line.waiting[1]
		}
		at = max(at, then)
	}
	return at
}

// wait adds a copy to those that wait (1) or takes it away (-1).
func (l lines) wait(f *flight, n time.Duration) {
	for _, line := range l {
		line.waiting[f.expected()] += n * line.takes(f)
	}
}

// start and end bracket the time in which a copy moves.
func (l lines) start(f *flight, now time.Duration) {
	for _, line := range l {
		line.moving++
		line.until = max(now, line.until) + line.takes(f)
	}
}

func (l lines) end() {
	for _, line := range l {
		if line.moving--; line.moving == 0 {
			line.until = 0
		}
	}
}

// lineMaker makes the lines of a platform.
type lineMaker struct {
	p           *platform.Platform
	into, outOf []line    // by memory
	over        [][2]line // by link and direction
}

func newLineMaker(p *platform.Platform) *lineMaker {
	m := &lineMaker{p: p, into: make([]line, len(p.Memories)), outOf: make([]line, len(p.Memories)),
		over: make([][2]line, len(p.Links))}
	for i := range p.Memories {
		m.into[i], m.outOf[i] = line{p: p, link: noLink}, line{p: p, link: noLink}
	}
	for l := range p.Links {
		for direction := range m.over[l] {
			m.over[l][direction] = line{p: p, link: platform.LinkID(l)}
		}
	}
	return m
}

// of is the lines of the copies from one memory to another, which take an engine out of the
// one or do not. The host's memory has no engines.
func (m *lineMaker) of(from, to platform.MemoryID, takesOut bool) (l lines) {
	host := m.p.HostMemory()
	if to != host {
		l = append(l, &m.into[to])
	}
	if from != host && (to == host || takesOut) {
		l = append(l, &m.outOf[from])
	}
	for _, use := range m.p.LinkUses(from, to) {
		if m.p.Links[use.Link].Sharing == platform.Fatpipe {
			continue
		}
		for range use.Times { // a copy that crosses a link twice stands in its line twice
			l = append(l, &m.over[use.Link][use.Direction])
		}
	}
	return l
}
