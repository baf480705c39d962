package execute

import (
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
