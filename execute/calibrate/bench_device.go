package calibrate

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/host"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/platform"
)

// kernelName names the kernel that a device loads: a variant of an operation for a type.
type kernelName struct{ op, variant, elem string }

func nameOf(m *platform.Model) kernelName { return kernelName{m.Op, m.Variant, m.Type} }

// newBench binds one kernel variant to sets of operands for each busy unit, and returns the calls by
// unit. They are to take turns, as in [bench]. The sets together exceed twice the device's
// second-level cache, or are as many as the arena holds, at most drawnSets. It returns errTooLarge
// if the arena does not hold one set for each unit. First use is the time of binding a kernel for
// the first time, and the excess of its first call over the second.
func (s *station) newBench(pt *point, units int) ([][]driver.LaunchID, error) {
	sets := make([][]driver.LaunchID, units)
	contents := newContents(pt.spec)
	s.used = 0
	least := 2 * s.platform.Devices[s.id].L2Bytes
	name := nameOf(&pt.model)
	for set := 0; set == 0 || set < drawnSets && int64(set)*pt.spec.Bytes() < least; set++ {
		for u := range sets {
			call, err := s.newCall(pt.variant, pt.spec, func(operand int) []byte { return contents.bytes(set, operand) })
			if errors.Is(err, errTooLarge) && set > 0 {
				return sets, s.firstCall(sets[0][0], name)
			}
			if err != nil {
				return nil, err
			}
			begin := s.now()
			l, err := s.Driver.Bind(call)
			if err != nil {
				return nil, err
			}
			if set == 0 && u == 0 && !s.loaded[name] {
				s.firstUse.Kernels += s.now() - begin
			}
			sets[u] = append(sets[u], l)
		}
	}
	return sets, s.firstCall(sets[0][0], name)
}

// firstCall makes a call for the first time, and again. If the kernel was never called before, the excess
// of the first call over the second counts as first use.
func (s *station) firstCall(l driver.LaunchID, name kernelName) error {
	var took [2]time.Duration
	for i := range took {
		begin := s.now()
		if err := cmp.Or(s.Driver.Launch(s.compute[0], l), s.Finish(s.compute[0])); err != nil {
			return err
		}
		took[i] = s.now() - begin
	}
	if !s.loaded[name] {
		s.firstUse.Kernels += max(0, took[0]-took[1])
		s.loaded[name] = true
	}
	return nil
}

// measureCalls repeats calls on all units at once for about a duration, the first few of each unit
// in turn. With one the operands are warm. It returns the times by unit.
func (s *station) measureCalls(calls [][]driver.LaunchID, budget time.Duration, first int) ([][]time.Duration, error) {
	tracks := make([]*track, len(calls))
	for u, launches := range calls {
		n := min(first, len(launches))
		tracks[u] = &track{stream: s.compute[u], issue: func(i int) error { return s.Driver.Launch(s.compute[u], launches[i%n]) }}
	}
	err := s.repeat(s.within(budget, minRepeats, maxRepeats), tracks...)
	times := make([][]time.Duration, len(tracks))
	for u, t := range tracks {
		times[u] = t.times
	}
	return times, err
}

// newCall lays the operands of a call out in the rest of the arena. It fills them with contents;
// if contents is nil, the arena's bytes stay.
func (s *station) newCall(v *calls.Variant, spec *calls.Spec, contents func(operand int) []byte) (*driver.Call, error) {
	k, _ := kernels.KernelByName(spec.Op)
	c := &driver.Call{Kernel: k, Spec: spec, Variant: v, Device: s.id, Worker: -1}
	for i, o := range spec.Operands {
		buf := &dag.Buffer{Shape: o.Shape, Type: o.Type}
		at, ok := s.allocate(buf.Bytes())
		if !ok {
			return nil, errTooLarge
		}
		if contents != nil {
			if err := s.upload(at, contents(i)); err != nil {
				return nil, err
			}
		}
		c.Args = append(c.Args, driver.Operand{Base: at, Buffer: buf, Mode: o.Mode})
	}
	if v.WorkspaceBytes != nil {
		var ok bool
		s.used = (s.used + driver.Align - 1) &^ (driver.Align - 1)
		if c.Work, ok = s.allocate(v.WorkspaceBytes(spec)); !ok {
			return nil, errTooLarge
		}
	}
	return c, nil
}

// operandContents is the bytes of sets of operands. A branch predictor would learn signs that
// repeat from set to set, so operands with a sign differ; the others are alike. After drawnSets
// sets all repeat.
type operandContents struct {
	spec  *calls.Spec
	rng   *rand.Rand
	drawn map[[2]int][]byte // by set and operand
}

func newContents(spec *calls.Spec) *operandContents {
	return &operandContents{spec: spec, rng: rand.New(rand.NewPCG(seedOfBench, 0)), drawn: map[[2]int][]byte{}}
}

func (c *operandContents) bytes(set, operand int) []byte {
	k, _ := kernels.KernelByName(c.spec.Op)
	sign := k.Operands[operand].Input
	if set %= drawnSets; !sign {
		set = 0
	}
	at := [2]int{set, operand}
	if c.drawn[at] == nil {
		o := &c.spec.Operands[operand]
		buf := dag.Buffer{Shape: o.Shape, Type: o.Type}
		c.drawn[at] = host.AlignedBytes(buf.Bytes())
		arg := calls.Bind(unsafe.Pointer(unsafe.SliceData(c.drawn[at])), &buf, nil, o.Mode)
		fill(&arg, o.Type, c.rng, sign)
	}
	return c.drawn[at]
}
