package durable

import (
	"cmp"
	"errors"
	"io"
	"os"
	"time"
)

// HeldError says that another process, or this one, holds a lock.
type HeldError struct{ By string } // as the holder wrote it; empty means that it has not yet

func (e HeldError) Error() string { return "it is in use by " + cmp.Or(e.By, "another process") }

// Lock takes the lock of a file, which holds a line about its holder, and is left empty when
// [File.Unlock] gives the lock back. The lock ends with the process too. Where the system or the file system has none,
// nothing is locked.
func (d *Dir) Lock(name, holder string) (*File, error) {
	f := &File{path: d.join(name)}
	err := do(OpAppend, "locking", f.path, func() (err error) {
		if f.f, err = d.regular(name, os.O_RDWR|os.O_CREATE); err != nil {
			return err
		}
		for range 2 { // whoever only looks at the lock holds it for a moment
			if err = lockFile(f.f, true); !errors.Is(err, errHeld) {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
		return HeldError{holderOf(f.f)}
	})
	if err != nil {
		if f.f != nil {
			f.f.Close()
		}
		return nil, err
	}
	if f.cut(0) == nil { // the line is for messages: a full disk is no reason to lock nothing
		io.WriteString(f, holder)
	}
	return f, nil
}

// Unlock gives a lock back, so that nothing tells who has held it.
func (f *File) Unlock() error {
	f.cut(0) // the line is for messages
	return f.Close()
}

// Holder says who holds the lock of a file; ok is false where nobody does.
func (d *Dir) Holder(name string) (by string, ok bool) {
	f, err := d.Open(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if !errors.Is(lockFile(f, false), errHeld) {
		return "", false
	}
	return HeldError{holderOf(f)}.By, true
}

// errHeld is the answer to an attempt to take a lock that somebody has.
var errHeld = errors.New("the lock is held")

// maxHolderBytes bounds what is believed of a holder's line.
const maxHolderBytes = 200

func holderOf(f *os.File) string {
	text, err := io.ReadAll(io.LimitReader(f, maxHolderBytes))
	if err != nil {
		return ""
	}
	return string(text)
}
