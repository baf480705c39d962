//go:build cuda

package cuda

import (
	"errors"
	"slices"

	"dahl/kernels/offload"
)

// libraryFile is the file of a library of GPU kernels that was found; the error says why there is none.
func libraryFile(name string) (string, error) {
	l, err := Load(name)
	if err != nil {
		return "", err
	}
	return l.Name, nil
}

// bindLibrary prepares a library's call. It also gives a handle to each stream that may issue the
// call, since handles allocate. It returns the library's index in the driver. With an error it
// returns what was prepared before.
func (d *gpuDriver) bindLibrary(name string, from offload.LibraryCall) (of int, ready LibraryCall, err error) {
	library, err := Load(name)
	if err != nil {
		return 0, nil, err
	}
	if of = slices.Index(d.libraries, name); of < 0 {
		of, d.libraries = len(d.libraries), append(d.libraries, name)
	}
	for i := range d.streams {
		s := &d.streams[i]
		if s.copies {
			continue
		}
		for len(s.handles) <= of {
			s.handles = append(s.handles, nil)
		}
		if s.handles[of] == nil {
			if s.handles[of], err = library.NewHandle(s.Stream); err != nil {
				return of, ready, err
			}
			d.undo = append(d.undo, s.handles[of].Destroy)
		}
		if ready == nil {
			if ready, err = s.handles[of].Prepare(from); err != nil {
				return 0, nil, err
			}
		}
	}
	return of, ready, nil
}

// firstUse makes a call once on every stream that may launch it. A library loads its kernels at
// their first use. A capture does not allow that, and a timed step should not pay for it. Some
// calls are refused only then. Operands hold nothing of worth yet (see driver.bind).
func (d *gpuDriver) firstUse(call *gpuCall) error {
	for i := range d.streams {
		if s := &d.streams[i]; !s.copies {
			if err := errors.Join(s.launch(call), s.Synchronize()); err != nil {
				return err
			}
		}
	}
	return nil
}
