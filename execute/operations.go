package execute

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"dahl/kernels"
	"dahl/schedule"
)

// builtin is a copy of the table of operations, since tasks look theirs up often.
var builtin = sync.OnceValue(func() *kernels.Table {
	t, err := kernels.NewTable()
	if err != nil {
		panic("execute: " + err.Error())
	}
	return t
})

// operation finds an operation of package kernels. Nobody changes the result.
func operation(op string) (*kernels.Kernel, bool) { return builtin().Lookup(op) }

// tableOf is the operations among which a program finds its own.
func tableOf(d *schedule.Decision) *kernels.Table {
	t, _ := d.Priced.Target().(Target)
	return cmp.Or(t.Kernels, builtin())
}

// LibraryFile is the file of a library of kernels, such as [dahl/kernels/offload.CuBLAS], that a driver has found;
// the error says why there is none.
func LibraryFile(name string) (file string, err error) {
	for _, b := range eachBackend {
		if b.Library == nil {
			continue
		}
		found, none := b.Library(name)
		if none == nil {
			return found, nil
		}
		err = errors.Join(err, none)
	}
	return "", err
}

// CheckVariant reports why no operation can run a variant on this machine: the variant needs a
// library that is not installed. bind finds out whether a device has everything that a variant
// needs.
func CheckVariant(name string) error {
	for _, k := range kernels.Kernels() {
		if v, ok := k.Variant(name); ok && v.Library != "" {
			if _, err := LibraryFile(v.Library); err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			break
		}
	}
	return nil
}
