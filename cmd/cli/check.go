package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dahl/dag"
	"dahl/naming"
	"dahl/nn"
)

// NoArgs refuses arguments of a command.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("argument %q belongs to no flag", args[0])
}

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

// CheckName refuses the value of a flag that is not one of some names.
func CheckName(flag, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	return InputErrorf("--%s %q: want %s%s", flag, name, naming.OneOf(known), naming.DidYouMean(name, known))
}

// RealTypes are the element types of networks.
func RealTypes() (names []string) {
	for _, t := range nn.Types() {
		names = append(names, t.String())
	}
	return names
}

// RealType reads an element type of networks.
func RealType(name string) (dag.DType, error) {
	if err := CheckName("dtype", name, RealTypes()); err != nil {
		return 0, err
	}
	return dag.ParseDType(name)
}
