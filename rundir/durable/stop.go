package durable

import (
	"os"
	"sync"
)

// running is held by every operation, and by Stop for good.
var running sync.RWMutex

// discards removes what a stopped program does not leave behind.
var discards struct {
	sync.Mutex
	list map[*func()]struct{}
}

// Stop is for a program that ends at once, whatever it is doing. It waits for the running
// operations, lets no other begin, and removes half-written files.
func Stop() {
	running.Lock()
	discards.Lock()
	for remove := range discards.list {
		(*remove)()
	}
}

// discard makes Stop call a function until keep is called.
func discard(remove func()) (keep func()) {
	discards.Lock()
	defer discards.Unlock()
	if discards.list == nil {
		discards.list = map[*func()]struct{}{}
	}
	discards.list[&remove] = struct{}{}
	return func() {
		discards.Lock()
		defer discards.Unlock()
		delete(discards.list, &remove)
	}
}

// Discard makes [Stop] remove a file or a directory with all that is in it, until keep is called.
func (d *Dir) Discard(name string) (keep func()) {
	return discard(func() { d.root.RemoveAll(name) }) // nobody is left to be told that it stays
}

// TempDir makes a directory for temporary files, which remove removes, or [Stop].
func TempDir(pattern string) (path string, remove func(), err error) {
	if path, err = os.MkdirTemp("", pattern); err != nil {
		return "", nil, err
	}
	gone := func() { os.RemoveAll(path) }
	keep := discard(gone)
	return path, func() { gone(); keep() }, nil
}
