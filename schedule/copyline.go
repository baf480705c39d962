package schedule

import (
	"slices"
	"time"

	"dahl/platform"
)

// line is copies that take turns: the copies into a memory, those out of it, or those over one
// direction of a shared link. The line expects them to end one after the other, however many
// engines there are.
type line struct {
	p       *platform.Platform
	link    platform.LinkID  // noLink: the line of a memory
	waiting [2]time.Duration // time of the copies that wait for engines or room: urgent and awaited ones, early ones
	moving  int
	until   time.Duration // when the moving copies should have come
}

const noLink platform.LinkID = -1

// takes is how long a copy occupies the line: an engine for the whole copy, a link while its
// bytes pass. A copy without bytes will not be made.
func (l *line) takes(f *flight) time.Duration {
	switch {
	case f.Bytes == 0:
		return 0
	case l.link == noLink:
		return l.p.RouteTime(f.From, f.To, f.Bytes)
	}
	return l.p.LinkTime(l.link, f.Bytes)
}

// lines are the lines in which the copies of one way stand.
type lines []*line

// free is when all copies in these lines should have come. If urgent, it counts only copies that
// a worker waits for.
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

// idle reports whether no copy moves in these lines.
func (l lines) idle() bool {
	return !slices.ContainsFunc(l, func(line *line) bool { return line.moving > 0 })
}

// wait adds a copy to the waiting ones (1) or removes it (-1).
func (l lines) wait(f *flight, n time.Duration) {
	for _, line := range l {
		line.waiting[f.expected()] += n * line.takes(f)
	}
}

// start and end bracket the time during which a copy moves.
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

// of returns the lines of the copies from one memory to another. takesOut says whether they need
// an engine out of the source. The host's memory has no engines.
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
