package calibrate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
	"unsafe"

	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/platform"
	"dahl/schedule/layout"
)

// station is a device while it is calibrated: its driver on a thread of its own, memory that all
// measurements share, and streams as the executor makes them. Everything but openStation and
// Close runs on that thread.
type station struct {
	*driver.Thread
	memory   platform.MemoryID
	name     string
	id       platform.DeviceID // the first device of its memory
	platform *platform.Platform
	ctx      context.Context
	now      func() time.Duration // the host's clock

	compute []driver.StreamID // by unit
	in, out driver.StreamID
	marks   []*trackMarks

	arena      driver.Address
	arenaBytes int64
	used       int64  // bytes of the arena
	staging    []byte // pinned memory of the host
	firstUse   platform.FirstUse
	loaded     map[kernelName]bool // kernels whose first use is in firstUse or in the platform

	speedExtent int // extent of the largest float32 product that was measured
}

const (
	maxCopyBytes    = 64 << 20
	benchArenaBytes = 256 << 20 // at most, and at most three quarters of the device's free memory
	rewrites        = 5         // of memory that has been written before
	trackDepth      = 16        // one more than the repetitions issued and not yet known to be done
	// trackAhead is how much of a device's time may be issued in advance. It keeps the wait for
	// the end short.
	trackAhead = 50 * time.Millisecond
)

// openStation opens a device and reserves the memory for measurements.
func openStation(ctx context.Context, p *platform.Platform, id platform.DeviceID, now func() time.Duration, open driver.Opener) (*station, error) {
	dev := &p.Devices[id]
	s := &station{Thread: driver.NewThread(func(main func()) { go main() }), memory: dev.Memory, name: dev.Name, id: id, platform: p, ctx: ctx, now: now,
		loaded: map[kernelName]bool{}}
	err := s.Do(func() error {
		begin := s.now()
		if err := s.Open(dev, open); err != nil {
			return err
		}
		s.firstUse.Context = s.now() - begin
		return s.prepare(dev.Count)
	})
	if err != nil {
		_ = s.Close() // the first error is the one to tell
		return nil, fmt.Errorf("device %q: %w", dev.Name, err)
	}
	return s, nil
}

// prepare makes the streams, reserves memory and times the memory's first use.
func (s *station) prepare(units int) (err error) {
	s.compute = make([]driver.StreamID, units)
	for i := range s.compute {
		if s.compute[i], err = s.Driver.NewStream(false); err != nil {
			return err
		}
	}
	for _, stream := range []*driver.StreamID{&s.in, &s.out} {
		if *stream, err = s.Driver.NewStream(true); err != nil {
			return err
		}
	}
	s.arenaBytes = benchArenaBytes
	if s.Properties.CapacityBytes > 0 {
		s.arenaBytes = min(s.arenaBytes, s.Properties.FreeBytes/4*3)
	}
	s.arenaBytes &^= host.PageBytes - 1
	if s.arenaBytes == 0 {
		return fmt.Errorf("%d bytes of its memory are free, too few to measure: %w", s.Properties.FreeBytes, driver.ErrMemory)
	}
	return s.reserve()
}

// reserve takes memory and writes it for the first time, then several times more. The least of
// the later times counts, since other users of the computer make any of them late.
func (s *station) reserve() (err error) {
	s.staging = host.AlignedBytes(2 * s.copyBytes())
	begin := s.now()
	if s.arena, err = s.Driver.Reserve(s.arenaBytes); err != nil {
		return err
	}
	if err := cmp.Or(s.Driver.Pin(host.WholePages(s.staging)), s.writeAll()); err != nil {
		return err
	}
	first, again := s.now()-begin, time.Duration(math.MaxInt64)
	for range rewrites {
		begin := s.now()
		if err := s.writeAll(); err != nil {
			return err
		}
		again = min(again, s.now()-begin)
	}
	if first > again {
		s.firstUse.MemoryBytesPerSec = float64(s.arenaBytes+int64(len(s.staging))) / (first - again).Seconds()
	}
	return nil
}

// writeAll writes the arena and the pinned memory.
func (s *station) writeAll() error {
	clear(s.staging)
	return cmp.Or(s.Driver.Fill(s.compute[0], s.arena, s.arenaBytes, 0), s.Finish(s.compute[0]))
}

// copyBytes is the greatest measured copy: two of them fit the arena.
func (s *station) copyBytes() int64 { return min(maxCopyBytes, s.arenaBytes/2) }

// allocate hands out memory of the arena; ok is false where none is left.
func (s *station) allocate(bytes int64) (at driver.Address, ok bool) {
	if s.used+bytes > s.arenaBytes {
		return 0, false
	}
	at = s.arena + driver.Address(s.used)
	s.used += layout.Align(bytes)
	return at, true
}

// upload writes bytes to the device's memory.
func (s *station) upload(at driver.Address, data []byte) error {
	for len(data) > 0 {
		n := copy(s.staging, data)
		if err := cmp.Or(s.Driver.Copy(s.in, driver.CopyOf(s.toDevice(at), s.inHost(0), int64(n))), s.Finish(s.in)); err != nil {
			return err
		}
		at, data = at+driver.Address(n), data[n:]
	}
	return nil
}

func (s *station) toDevice(at driver.Address) driver.Plane {
	return driver.Plane{Memory: s.memory, Device: at}
}

// inHost is a place in the host's pinned memory.
func (s *station) inHost(offset int64) driver.Plane {
	return driver.Plane{Memory: s.platform.HostMemory(), Host: unsafe.Pointer(&s.staging[offset])}
}

// trackMarks are the events around the repetitions in progress.
type trackMarks struct{ starts, ends [trackDepth]driver.EventID }

// marksOf makes events at the first call, since they live as long as the driver.
func (s *station) marksOf(track int) (*trackMarks, error) {
	for len(s.marks) <= track {
		m := &trackMarks{}
		if err := cmp.Or(s.NewEvents(m.starts[:]), s.NewEvents(m.ends[:])); err != nil {
			return nil, err
		}
		s.marks = append(s.marks, m)
	}
	return s.marks[track], nil
}

// track is an operation repeated on a stream, with the time of each repetition on the device's
// clock.
type track struct {
	stream driver.StreamID
	issue  func(i int) error
	marks  *trackMarks
	times  []time.Duration

	// noteGaps asks for the times from each end to the next start, too.
	noteGaps bool
	gaps     []time.Duration
}

// repeat repeats the operations of all tracks at once while more allows it. It asks more before
// each round, with the number of rounds issued.
func (s *station) repeat(more func(round int) bool, tracks ...*track) error {
	for i, t := range tracks {
		var err error
		if t.marks, err = s.marksOf(i); err != nil {
			return err
		}
	}
	issued, taken, ahead := 0, 0, 1
	collect := func() error {
		for _, t := range tracks {
			if err := s.collectTrack(t, taken); err != nil {
				return err
			}
		}
		if taken++; taken == 1 {
			ahead = int(min(trackDepth-1, max(1, trackAhead/max(1, tracks[0].times[len(tracks[0].times)-1]))))
		}
		return nil
	}
	for ; more(issued); issued++ {
		if issued-taken >= ahead {
			if err := collect(); err != nil {
				return err
			}
		}
		for _, t := range tracks {
			start, end := t.marks.starts[issued%trackDepth], t.marks.ends[issued%trackDepth]
			if err := cmp.Or(s.Driver.Record(t.stream, start), t.issue(issued), s.Driver.Record(t.stream, end)); err != nil {
				return err
			}
		}
	}
	for taken < issued {
		if err := collect(); err != nil {
			return err
		}
	}
	return s.ctx.Err()
}

func (s *station) collectTrack(t *track, round int) error {
	start, end := t.marks.starts[round%trackDepth], t.marks.ends[round%trackDepth]
	if err := s.Await(end); err != nil {
		return err
	}
	took, err := s.Driver.Elapsed(start, end)
	t.times = append(t.times, took)
	if err != nil || !t.noteGaps || round == 0 {
		return err
	}
	gap, err := s.Driver.Elapsed(t.marks.ends[(round-1)%trackDepth], start)
	t.gaps = append(t.gaps, gap)
	return err
}

// within says how long to repeat, about, and how often at least and at most.
func (s *station) within(budget time.Duration, least, most int) func(round int) bool {
	begin := s.now()
	return func(round int) bool {
		spent := s.now() - begin
		return round < most && s.ctx.Err() == nil && (round == 0 || spent < 10*budget && (round < least || spent < budget))
	}
}
