package calibrate

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"dahl/execute/driver"
	"dahl/platform"
	"dahl/platform/fit"
	"dahl/stats"
)

const (
	leastCopyBytes = 4
	copyFactor     = 4 // from one size to the next
	copyTime       = 15 * time.Millisecond
	minCopies      = 5
	maxCopies      = 200
	// sharedFrom decides whether a link is shared. Two copies at once take twice as long as one on a
	// shared link, and as long as one on another link. The limit lies halfway.
	sharedFrom = 1.5
	// Strided copies have rows as wide as a tile of images often is, and gaps of the same width.
	stridedRowBytes = 4096
)

// Copies says how fast a memory exchanges bytes with the host's.
type Copies struct {
	Sizes    []int64
	In, Out  []time.Duration // median by size
	InFit    fit.Copies
	OutFit   fit.Copies
	Fit      fit.Copies // through both directions
	BothWays float64    // time of the greatest copy during one in the other direction, relative to one alone
	// Strided is the time of a copy in rows of 4096 bytes that lie 8192 apart, relative to a copy
	// of as many bytes without gaps.
	Strided float64
}

// Sharing is the kind of sharing that copies in both directions at once show.
func (c *Copies) Sharing() platform.Sharing {
	if c.BothWays >= sharedFrom {
		return platform.Shared
	}
	return platform.Duplex
}

// measureCopies measures copies of all sizes, and two at once.
func (s *station) measureCopies() (c Copies, err error) {
	for n := int64(leastCopyBytes); n <= s.copyBytes(); n *= copyFactor {
		in, err := s.medianOf(s.copyIn(n))
		if err != nil {
			return c, err
		}
		out, err := s.medianOf(s.copyOut(n))
		if err != nil {
			return c, err
		}
		c.Sizes, c.In, c.Out = append(c.Sizes, n), append(c.In, in), append(c.Out, out)
	}
	var ok [3]bool
	c.InFit, ok[0] = fit.OfCopies(c.Sizes, c.In)
	c.OutFit, ok[1] = fit.OfCopies(c.Sizes, c.Out)
	c.Fit, ok[2] = fit.OfCopies(slices.Concat(c.Sizes, c.Sizes), slices.Concat(c.In, c.Out))
	if ok != [3]bool{true, true, true} {
		return c, errNoClock
	}
	if err := s.measureBothWays(&c); err != nil {
		return c, err
	}
	return c, s.measureStrided(&c)
}

// copyIn is a track of copies from the host, copyOut a track of copies to it. Their places
// differ.
func (s *station) copyIn(bytes int64) *track {
	c := driver.CopyOf(s.toDevice(s.arena), s.inHost(0), bytes)
	return &track{stream: s.in, issue: func(int) error { return s.Driver.Copy(s.in, c) }}
}

func (s *station) copyOut(bytes int64) *track {
	half := s.copyBytes()
	c := driver.CopyOf(s.inHost(half), s.toDevice(s.arena+driver.Address(half)), bytes)
	return &track{stream: s.out, issue: func(int) error { return s.Driver.Copy(s.out, c) }}
}

// medianOf repeats a track alone and returns the median of its times.
func (s *station) medianOf(t *track) (time.Duration, error) {
	err := s.repeat(s.within(copyTime, minCopies, maxCopies), t)
	return stats.Median(t.times), err
}

// measureBothWays compares the greatest copies in both directions at once with one copy alone.
func (s *station) measureBothWays(c *Copies) error {
	last := len(c.Sizes) - 1
	in, out := s.copyIn(c.Sizes[last]), s.copyOut(c.Sizes[last])
	if err := s.repeat(s.within(copyTime, minCopies, maxCopies), in, out); err != nil {
		return err
	}
	c.BothWays = max(ratio(stats.Median(in.times), c.In[last]), ratio(stats.Median(out.times), c.Out[last]))
	return nil
}

// measureStrided compares rows with gaps to bytes without.
func (s *station) measureStrided(c *Copies) error {
	rows := s.copyBytes() / (2 * stridedRowBytes)
	if rows == 0 {
		return nil
	}
	strided := driver.CopyOf(s.toDevice(s.arena), s.inHost(0), rows*stridedRowBytes)
	strided.Rows, strided.RowBytes, strided.To.Pitch, strided.From.Pitch = rows, stridedRowBytes, 2*stridedRowBytes, 2*stridedRowBytes
	took, err := s.medianOf(&track{stream: s.in, issue: func(int) error { return s.Driver.Copy(s.in, strided) }})
	if err != nil {
		return err
	}
	whole, err := s.medianOf(s.copyIn(rows * stridedRowBytes))
	c.Strided = ratio(took, whole)
	return err
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// measureCrowded notes how much longer the greatest copy into each measured device takes while all
// of them copy, relative to alone.
func (c *calibrator) measureCrowded(stations []*station) error {
	results := map[*station]*Device{}
	for _, s := range stations {
		if i := slices.IndexFunc(c.result.Devices, func(d Device) bool { return d.Device == s.name }); i >= 0 {
			results[s] = &c.result.Devices[i]
		}
	}
	if len(results) < 2 {
		return nil
	}
	errs := make([]error, len(stations))
	var all sync.WaitGroup
	for i, s := range stations {
		d := results[s]
		if d == nil {
			continue
		}
		all.Go(func() {
			errs[i] = s.Do(func() error {
				last := len(d.Copies.Sizes) - 1
				t := s.copyIn(d.Copies.Sizes[last])
				// This runs longer than alone, so that most of each run overlaps most of the
				// others.
				err := s.repeat(s.within(4*copyTime, minCopies, math.MaxInt), t)
				d.Crowded = ratio(stats.Median(t.times), d.Copies.In[last])
				return err
			})
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}
