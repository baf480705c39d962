package nn

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"dahl/naming"
)

// MaxSampleElems bounds one sample at any layer, so that byte counts cannot overflow.
const MaxSampleElems = 1 << 32

func (m *Model) infer(layers []Layer) error {
	if err := checkShape(m.Input); err != nil {
		return &Fault{-1, "input", fmt.Errorf("input: %w", err)}
	}
	if len(layers) == 0 {
		return fmt.Errorf("it has no layers")
	}
	all := placed{map[string]int{}, map[string]Layer{}}
	m.Stages, m.named = make([]Stage, 0, len(layers)), map[string]int{}
	for i, layer := range layers {
		if err := m.place(layer, all); err != nil {
			if _, ok := errors.AsType[*Fault](err); ok {
				return err
			}
			return &Fault{i, ".input", err}
		}
	}
	last := len(m.Stages) - 1
	for i := range m.Stages[:last] {
		if s := &m.Stages[i]; len(s.readers) == 0 {
			return &Fault{i, "", fmt.Errorf("layer %q: no layer reads its output; write its name into the input of a later layer, or leave it out", s.Name)}
		}
	}
	return m.bringKernels()
}

// Fault is a mistake in a model, and its place in the model file: the number of the layer, and the rest of the path of its
// key. Without a layer, -1, Key is all of the path.
type Fault struct {
	Layer int
	Key   string
	error
}

// Unwrap implements the interface of package errors.
func (f *Fault) Unwrap() error { return f.error }

// placed describes the layers that are in their places.
type placed struct {
	count map[string]int   // of automatic names, by their prefix
	kinds map[string]Layer // a layer of each kind
}

// place puts a layer behind the last one of the model.
func (m *Model) place(layer Layer, all placed) error {
	var inputs []string
	s := Stage{Layer: layer}
	for n, ok := layer.(Named); ok; n, ok = s.Layer.(Named) {
		s.Name, s.Layer = cmp.Or(s.Name, n.Name), n.Layer
		s.StateName = cmp.Or(s.StateName, n.StateName)
		s.shares = append(s.shares, n.Shares...)
		if inputs == nil {
			inputs = n.Inputs
		}
	}
	kind, prefix := s.Layer.Kind(), PrefixOf(s.Layer)
	if other, known := all.kinds[kind]; known && !sameType(other, s.Layer) {
		return fmt.Errorf("layer %T: its kind %q is that of %T; give it another", s.Layer, kind, other)
	}
	all.kinds[kind] = s.Layer
	all.count[prefix]++
	if s.Name == "" {
		s.Name = fmt.Sprintf("%s%d", prefix, all.count[prefix])
	}
	if err := CheckName(s.Name); err != nil {
		return err
	}
	if m.index(s.Name) >= 0 {
		return fmt.Errorf("layer %q: the name is taken by an earlier layer", s.Name)
	}
	if err := m.connect(&s, inputs); err != nil {
		return fmt.Errorf("layer %q: %w", s.Name, err)
	}
	if s.StateName == "" {
		s.StateName = s.Name
	} else if s.StateName != s.Name && !IsStateName(s.StateName) {
		return fmt.Errorf("layer %q: names of parameters that begin with %q; use letters, digits, '_', '-' and '.', and another word than grad or state", s.Name, s.StateName)
	}
	if err := cmp.Or(s.complete(), m.share(&s)); err != nil {
		return err
	}
	for i, from := range s.Inputs {
		readers := &m.inputReaders
		if from != ModelInput {
			readers = &m.Stages[from].readers
		}
		*readers = append(*readers, reader{len(m.Stages), i})
	}
	m.named[s.Name] = len(m.Stages)
	m.Stages = append(m.Stages, s)
	return nil
}

// PrefixOf is how automatic names of a layer begin: what its method Prefix says, or its kind.
func PrefixOf(l Layer) string {
	if p, ok := l.(interface{ Prefix() string }); ok {
		return p.Prefix()
	}
	return l.Kind()
}

// connect finds the inputs of a layer by their names. Without names it reads the layer before it.
func (m *Model) connect(s *Stage, inputs []string) error {
	s.Inputs = []int{len(m.Stages) - 1}
	if inputs != nil {
		s.Inputs = nil
	}
	for _, name := range inputs {
		from := m.index(name)
		if from < 0 && name != InputName {
			known := []string{InputName}
			for i := range m.Stages {
				known = append(known, m.Stages[i].Name)
			}
			return fmt.Errorf("input %q is not a layer before it; there are %s%s", name, strings.Join(known, ", "), naming.DidYouMean(name, known))
		}
		s.Inputs = append(s.Inputs, from)
	}
	for _, from := range s.Inputs {
		shape := m.Input
		if from != ModelInput {
			shape = m.Stages[from].Out
			s.learns = s.learns || m.Stages[from].learns
		}
		s.In = append(s.In, shape)
	}
	return nil
}

// index is the index of a layer by its name, or ModelInput.
func (m *Model) index(name string) int {
	if i, ok := m.named[name]; ok {
		return i
	}
	return ModelInput
}

// complete asks the layer for its output and its parameters.
func (s *Stage) complete() (err error) {
	if s.Out, err = s.Layer.Output(s.In); err == nil {
		err = checkShape(s.Out)
	}
	if err != nil {
		var shapes []string
		for _, in := range s.In {
			shapes = append(shapes, naming.ShapeText(in))
		}
		return fmt.Errorf("layer %q (%s) of input %s: %w", s.Name, s.Layer.Kind(), strings.Join(shapes, ", "), err)
	}
	if l, ok := s.Layer.(Learner); ok {
		s.Params = l.Params(s.In)
	}
	s.learns = s.learns || len(s.Params) > 0
	if t, ok := s.Layer.(interface{ Traits() Traits }); ok {
		s.Traits = t.Traits()
	}
	switch {
	case s.Traits.Weight && len(s.Params) == 0:
		return fmt.Errorf("layer %q (%s): it says that it has a weight, and has no parameters", s.Name, s.Layer.Kind())
	case s.Traits.Integers && s.learns:
		return fmt.Errorf("layer %q (%s): whole numbers have no gradient, and what it reads or has is learned", s.Name, s.Layer.Kind())
	}
	if t, ok := s.Layer.(Tracker); ok {
		s.Running = t.Running(s.In)
	}
	for _, p := range s.state() {
		p.Name = s.StateName + "." + p.Name
		if err := checkExtents(p.Shape); err != nil {
			return fmt.Errorf("parameter %q: %w", p.Name, err)
		}
	}
	return nil
}

// maxRank is the most dimensions of a sample.
const maxRank = 4

func checkShape(shape []int) error {
	if len(shape) < 1 || len(shape) > maxRank {
		return fmt.Errorf("shape %s; want 1 to %d dimensions", naming.ShapeText(shape), maxRank)
	}
	return checkExtents(shape)
}

func checkExtents(shape []int) error {
	n := 1
	for _, e := range shape {
		if e < 1 {
			return fmt.Errorf("shape %s; every extent is at least 1", naming.ShapeText(shape))
		}
		if n > MaxSampleElems/e {
			return fmt.Errorf("shape %s has more than %d elements", naming.ShapeText(shape), int64(MaxSampleElems))
		}
		n *= e
	}
	return nil
}
