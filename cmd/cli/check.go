package cli

import (
	"fmt"
	"slices"
	"strings"

	"dahl/dag"
)

// CheckNumbers refuses the values of a flag of whole numbers that are below 1.
func CheckNumbers(flag string, values ...int) error {
	if len(values) == 0 || slices.Min(values) < 1 {
		return InputErrorf("--%s %s: want at least 1", flag, strings.Trim(fmt.Sprint(values), "[]"))
	}
	return nil
}

// CheckNotNegative refuses the value of a flag that is below 0.
func CheckNotNegative(flag string, value int) error {
	if value < 0 {
		return InputErrorf("--%s %d: want at least 0", flag, value)
	}
	return nil
}

// CheckModels refuses networks that there are not.
func CheckModels(names ...string) error {
	if len(names) == 0 {
		return InputErrorf("name a network")
	}
	for _, name := range names {
		if _, err := LoadModel(name); err != nil {
			return err
		}
	}
	return nil
}

// RealType reads an element type of networks.
func RealType(name string) (dag.DType, error) {
	t, err := dag.ParseDType(name)
	if err != nil || t != dag.Float32 && t != dag.Float64 {
		return t, InputErrorf("--dtype %q: want float32 or float64", name)
	}
	return t, nil
}
