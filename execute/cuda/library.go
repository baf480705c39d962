//go:build cuda

package cuda

// #include <stdint.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"dahl/kernels/offload"
)

// ErrNoLibrary is wrapped by the errors of a machine that lacks a library.
var ErrNoLibrary = errors.New("the library was not found")

// Library is a library by NVIDIA, loaded at run time, that replaces kernels of ours.
type Library struct {
	Name      string // of the file
	functions functions
	table     unsafe.Pointer // the same addresses in memory of C, in the order of the source
	newHandle func(*Library, Stream) (LibraryHandle, error)
}

// NewHandle makes a handle for a stream of the current device. It may allocate device memory.
func (l *Library) NewHandle(s Stream) (LibraryHandle, error) { return l.newHandle(l, s) }

// source says how to find and use a library.
type source struct {
	title, file string
	majors      []int    // the versions to look for, best first
	functions   []string // names of those in use
	newHandle   func(*Library, Stream) (LibraryHandle, error)

	once   sync.Once
	loaded *Library
	err    error
}

// sources are the libraries of variants, by their names there. By the release notes of cuBLASLt,
// versions before 12 could leave the bias out where a product has one row or column, and get the
// gradient of a bias wrong where they split a sum. cuDNN has version numbers of its own: a file that is
// too new for the driver fails when a handle is made.
var sources = map[string]*source{
	offload.CuBLAS:   {title: "cuBLAS", file: "cublas", majors: []int{13, 12, 11}, functions: blasFunctions, newHandle: newBlasHandle},
	offload.CuBLASLt: {title: "cuBLASLt", file: "cublasLt", majors: []int{13, 12}, functions: ltFunctions, newHandle: newLtHandle},
	offload.CuDNN:    {title: "cuDNN", file: "cudnn", majors: []int{9, 8}, functions: dnnFunctions, newHandle: newDnnHandle},
}

// Load loads the newest version of a variant's library that the driver serves, at the first call;
// later calls repeat the result. Where there is none, the error wraps [ErrNoLibrary].
func Load(name string) (*Library, error) {
	s, ok := sources[name]
	if !ok {
		return nil, fmt.Errorf("there is no library %q", name)
	}
	s.once.Do(func() {
		if s.err = Start(); s.err == nil {
			s.loaded, s.err = s.load(s.files(DriverVersion()))
		}
	})
	return s.loaded, s.err
}

// LibraryHandle is a library on one stream.
type LibraryHandle interface {
	// Prepare prepares a call for every handle of the library on the device. It panics at a kind
	// of call that the library does not have. If the library refuses the call, the error wraps
	// offload.ErrRefused.
	Prepare(c offload.LibraryCall) (LibraryCall, error)
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

// load loads the first file that exists and finds the library's functions by name. If one is
// missing, the error wraps [ErrNoLibrary].
func (s *source) load(files []string) (*Library, error) {
	for _, file := range files {
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			continue
		}
		l := &Library{Name: file, functions: functions{}, newHandle: s.newHandle}
		l.table = C.calloc(C.size_t(len(s.functions)), C.sizeof_uintptr_t) // lives as long as the process, like the library
		for i, name := range s.functions {
			address, err := purego.Dlsym(handle, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %s is too old: it lacks %s: %w", s.title, file, name, ErrNoLibrary)
			}
			l.functions[name] = *(*unsafe.Pointer)(unsafe.Pointer(&address))
			unsafe.Slice((*unsafe.Pointer)(l.table), len(s.functions))[i] = l.functions[name]
		}
		return l, nil
	}
	return nil, fmt.Errorf("%s: none of %s can be loaded (LD_LIBRARY_PATH says where to look): %w", s.title, strings.Join(files, ", "), ErrNoLibrary)
}

// files are the files to look for with a driver for some CUDA version: one for each major version that
// the driver serves, in their order.
func (s *source) files(version int) []string {
	var files []string
	for _, major := range s.majors {
		if major <= version/1000 {
			files = append(files, fmt.Sprintf("lib%s.so.%d", s.file, major))
		}
	}
	return files
}
