package execute

import (
	"fmt"
	"sync"

	"dahl/kernels"
)

// operations is a copy of the table of operations by name, since tasks look theirs up often.
var operations = sync.OnceValue(func() map[string]*kernels.Kernel {
	byName, all := map[string]*kernels.Kernel{}, kernels.Kernels()
	for i := range all {
		byName[all[i].Op] = &all[i]
	}
	return byName
})

// operation finds the operation of a task. Nobody changes the result.
func operation(op string) (*kernels.Kernel, bool) {
	k, ok := operations()[op]
	return k, ok
}

// CheckVariant reports why no operation can run a variant on this machine: the variant needs a
// library that is not installed. bind finds out whether a device has everything that a variant
// needs.
func CheckVariant(name string) error {
	for _, k := range kernels.Kernels() {
		if v, ok := k.Variant(name); ok && v.Library != "" {
			if err := loadLibrary(v.Library); err != nil {
				return fmt.Errorf("variant %s: %w", name, err)
			}
			break
		}
	}
	return nil
}
