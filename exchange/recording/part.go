package recording

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// part says which events of a file to keep. A file is read twice where one step becomes a graph: at first for the times of steps and launches alone, and
// then for the step and the ones before and behind it. So memory holds three steps, and 16 bytes for each launch of the file.
type part struct {
	survey   bool
	launches []launch // of the survey: all; then those from the beginning of the span on, by link
	span              // of the host's work to keep
	steps    []step   // within the span
}

// launch is when a call began that may have launched work.
type launch struct{ link, at int64 }

// all is the part that keeps every event.
func all() *part { return &part{span: span{math.MinInt64, math.MaxInt64}} }

// marksStep reports whether steps are found by an event.
func (e *event) marksStep() bool {
	return e.cat == annotation && (strings.HasPrefix(e.name, stepPrefix) || strings.HasPrefix(e.name, updatePrefix))
}

// keep takes room for what is kept. Where there is none, the next check of the room fails.
func (r *recording) keep(bytes int64) { _ = r.room.Take(bytes) }

// wants reports whether to keep an event.
func (r *recording) wants(e *event) bool {
	r.start, r.end = min(r.start, e.start), max(r.end, e.end)
	launches := len(r.part.launches)
	wanted := r.part.wants(e)
	if r.keep(launchBytes * int64(len(r.part.launches)-launches)); wanted {
		r.keep(eventBytes + r.entry)
	}
	return wanted
}

func (p *part) wants(e *event) bool {
	switch {
	case p.survey:
		if e.cat == call && e.link != 0 {
			p.launches = append(p.launches, launch{e.link, e.start})
		}
		return e.marksStep()
	case e.start < p.end && e.end > p.start:
		return true
	case e.cat < kernel || e.link == 0:
		return false
	}
	at, found := slices.BinarySearchFunc(p.launches, e.link, func(l launch, link int64) int { return cmp.Compare(l.link, link) })
	if found {
		return p.launches[at].at < p.end
	}
	return e.end > p.start // older work may delay the work of the span
}

// around is the part of a surveyed file that a step needs.
func (r *recording) around(name string) (*part, error) {
	at, err := r.stepNamed(name)
	if err != nil {
		return nil, err
	}
	p := &part{steps: r.steps[max(0, at-1):min(at+2, len(r.steps))]}
	p.span = span{p.steps[0].start, p.steps[len(p.steps)-1].end}
	for _, l := range r.part.launches {
		if l.at >= p.start {
			p.launches = append(p.launches, l)
		}
	}
	slices.SortFunc(p.launches, func(a, b launch) int { return cmp.Compare(a.link, b.link) })
	return p, nil
}

// settle orders what was kept, and divides its time into steps.
func (r *recording) settle() {
	r.orderEvents()
	if r.part.steps == nil {
		r.findSteps()
		return
	}
	r.steps = r.part.steps
	r.crop(r.part.span)
}

// readStep reads the part of a file that a step needs; all of it for no name, or if it can be read once only.
func readStep(f File, read func(File, *part) (*recording, error), name string) (*recording, error) {
	if name == "" || f.Again == nil {
		return read(f, all())
	}
	surveyed, err := read(f, &part{survey: true})
	if err != nil {
		return nil, err
	}
	p, err := surveyed.around(name)
	if err != nil {
		return nil, err
	}
	if f.In, err = f.Again(); err != nil {
		return nil, err
	}
	return read(f, p)
}
