//go:build cuda

package cuda

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	kernelcode "dahl/kernels/cuda"
)

// ErrNoLibrary is wrapped by the errors of a machine that lacks a library.
var ErrNoLibrary = errors.New("the library was not found")

// Library is a library by NVIDIA, loaded at run time, that replaces kernels of ours.
type Library interface {
	// NewHandle makes a handle for a stream of the current device. It may allocate device memory.
	NewHandle(s Stream) (LibraryHandle, error)
}

// LibraryHandle is a library on one stream.
type LibraryHandle interface {
	// Prepare prepares a call for every handle of the library on the device. It panics at a kind
	// of call that the library does not have. If the library refuses the call, the error wraps
	// kernelcode.ErrRefused.
	Prepare(c kernelcode.LibraryCall) (LibraryCall, error)
	// Issue issues a call to the stream, where it may be captured.
	Issue(c LibraryCall) error
	// Destroy gives the handle back. The stream must still exist.
	Destroy() error
}

// LibraryCall is a prepared call of a library, in memory of C.
type LibraryCall interface {
	// Free gives the memory back.
	Free()
}

// functions are addresses of a library's functions, by name. cgo calls them, since purego's calls
// allocate.
type functions map[string]unsafe.Pointer

// loadFunctions loads the first file that exists and finds the library's functions by name. If
// one is missing, the error wraps [ErrNoLibrary].
func loadFunctions(library string, files, names []string) (file string, found functions, err error) {
	for _, file := range files {
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			continue
		}
		found := functions{}
		for _, name := range names {
			address, err := purego.Dlsym(handle, name)
			if err != nil {
				return "", nil, fmt.Errorf("%s: %s is too old: it lacks %s: %w", library, file, name, ErrNoLibrary)
			}
			found[name] = *(*unsafe.Pointer)(unsafe.Pointer(&address))
		}
		return file, found, nil
	}
	return "", nil, fmt.Errorf("%s: none of %s can be loaded (LD_LIBRARY_PATH says where to look): %w", library, strings.Join(files, ", "), ErrNoLibrary)
}

// libraryFiles are the files of a library to look for with a driver for some CUDA version: those
// of the majors that the driver serves, in their order.
func libraryFiles(library string, majors []int, version int) []string {
	var files []string
	for _, major := range majors {
		if major <= version/1000 {
			files = append(files, fmt.Sprintf("lib%s.so.%d", library, major))
		}
	}
	return files
}
