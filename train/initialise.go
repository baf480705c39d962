package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"dahl/dag"
	"dahl/nn"
	"dahl/nn/npz"
	"dahl/nn/random"
	"dahl/nn/weights"
)

// Initialiser fills the elements of a parameter from one on with their first values.
type Initialiser func(p *nn.Parameter, from int, values []float64) error

// Uniform draws all parameters from U(lo, hi), but for those whose elements all begin with one number.
func Uniform(seed uint64, lo, hi float64) Initialiser {
	return func(p *nn.Parameter, from int, values []float64) error {
		if p.FanIn == 0 && p.Deviation == 0 {
			p.Init(values, from, seed)
		} else {
			random.InitBetween(values, from, seed, p.Name, lo, hi)
		}
		return nil
	}
}

// FromFile takes the parameters of a network of a type from a file of weights that holds them and nothing else, as [weights.Spelling] says it
// may.
func FromFile(path string, m *nn.Model, t dag.DType) (Initialiser, error) {
	shapes := map[string][]int{}
	var names []string
	counts := map[string]bool{}
	for _, p := range m.State() {
		shapes[p.Name], names, counts[p.Name] = p.Shape, append(names, p.Name), p.Counts
	}
	shared := m.SharedNames() // PyTorch lists a parameter under all its names
	for name, of := range shared {
		shapes[name] = shapes[of]
	}
	given, err := readParameters(path, m.Name, shapes, counts, names)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if a, of := given[name], given[shared[name]]; a != nil && of != nil && !slices.Equal(a.Float64s(), of.Float64s()) {
			return nil, inputErrorf("%s: arrays %q and %q differ, and are one parameter of network %s; leave the former out", path, name, of.Name, m.Name)
		}
	}
	return func(p *nn.Parameter, from int, values []float64) error {
		a, ok := given[p.Name]
		if !ok {
			return inputErrorf("%s: no array %q of shape %v", path, p.Name, p.Shape)
		}
		a.Fill(values, from)
		bad := func(v float64) bool { return notFinite(v) || t == dag.Float32 && math.Abs(v) > math.MaxFloat32 }
		if i := slices.IndexFunc(values, bad); i >= 0 {
			return inputErrorf("%s: array %q has %v at %v; want a finite number of type %s", path, p.Name, values[i], npz.IndexOf(from+i, a.Shape), t)
		}
		return nil
	}, nil
}

// readParameters reads the arrays of a file by the names that they have in a network.
func readParameters(path, network string, shapes map[string][]int, counts map[string]bool, names []string) (map[string]*npz.Array, error) {
	spelling, joins, err := spellingOf(path, shapes)
	if err != nil {
		return nil, asInput(fmt.Errorf("reading the initial weights: %w", err))
	}
	turned := map[string]bool{}
	arrays, err := weights.Read(path, func(a *npz.Array) error {
		turn, err := spelling.Respell(a, shapes)
		if err != nil {
			return err
		}
		turned[a.Name] = turn
		shape, known := shapes[a.Name]
		switch {
		case !known:
			return fmt.Errorf("network %s has no parameter of this name; write %s and nothing else", network, strings.Join(names, ", "))
		case !slices.Equal(a.Shape, shape):
			return fmt.Errorf("its shape is %v, that of the parameter of network %s is %v", a.Shape, network, shape)
		case counts[a.Name] && a.Type != dag.Int64:
			return fmt.Errorf("its type is %v; write int64", a.Type)
		case !counts[a.Name] && a.Type != dag.Float32 && a.Type != dag.Float64:
			return fmt.Errorf("its type is %v; write float32 or float64", a.Type)
		}
		return nil
	})
	if err != nil {
		return nil, asInput(fmt.Errorf("reading the initial weights: %w", err))
	}
	given := map[string]*npz.Array{}
	for i := range arrays {
		if a := &arrays[i]; turned[a.Name] {
			weights.Transpose(a)
		}
		given[arrays[i].Name] = &arrays[i]
	}
	for name, parts := range joins {
		arrays := make([]*npz.Array, len(parts))
		for i, part := range parts {
			arrays[i] = given[part]
		}
		if slices.ContainsFunc(arrays, func(a *npz.Array) bool { return a.Type != arrays[0].Type }) {
			return nil, inputErrorf("%s: arrays %s have different types; write one type", path, strings.Join(parts, ", "))
		}
		given[name] = weights.Join(name, shapes[name], arrays...)
	}
	return given, nil
}

// spellingOf reads the names and shapes of a file of weights, and finds how they fit a network's.
func spellingOf(path string, network map[string][]int) (s weights.Spelling, joins map[string][]string, err error) {
	file := map[string][]int{}
	if _, err = weights.Read(path, func(a *npz.Array) error {
		file[a.Name] = a.Shape
		return npz.ErrSkip
	}); err != nil {
		return s, nil, err
	}
	s = weights.SpellingOf(file, network)
	if joins, err = s.Joins(file, network); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return s, joins, err
}
