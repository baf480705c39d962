//go:build mpi && linux

package mpi

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Loads says whether this program was built so that it can load an MPI library.
const Loads = true

// LibraryVariable is the environment variable with the file of the library to load, where it has an unusual name.
const LibraryVariable = "DAHL_MPI_LIBRARY"

// abi holds the differences between libraries: handles, sizes, constants.
type abi struct {
	name                       string
	world, byte_, errorsReturn uintptr
	ignore                     uintptr // instead of a status
	requestBytes               uintptr
	funneled                   uintptr // thread level
}

var (
	standardABI = abi{"standard ABI", 0x101, 0x247, 0x143, 0, 8, 1024}
	mpichABI    = abi{"MPICH ABI", 0x44000000, 0x4c00010d, 0x54000001, 1, 4, 1}
	openMPIABI  = abi{"Open MPI ABI", 0, 0, 0, 0, 8, 1} // handles are addresses of symbols
)

// functions are the calls in use.
var functions = [...]string{"MPI_Isend", "MPI_Irecv", "MPI_Test", "MPI_Error_string", "MPI_Abort", "MPI_Finalize",
	"MPI_Get_library_version", "MPI_Init_thread", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_set_errhandler"}

// lossFunctions are calls of ULFM, W. Bland et al., "Post-failure recovery of MPI communication capability", 2013. Open MPI has them from 5.0 on. MPICH 4.0
// has them too, and aborts in them.
var lossFunctions = [...]string{"MPIX_Comm_revoke", "MPIX_Comm_shrink"}

const revoke, shrink = 0, 1

// lossVariable is 1 where mpirun of Open MPI was started with --with-ft ulfm. Otherwise it ends all ranks when one is lost.
const lossVariable = "OMPI_MCA_mpi_ft_enable"

const (
	isend, irecv, test, errorString, abort, finalize              = 0, 1, 2, 3, 4, 5
	libraryVersion, initThread, commRank, commSize, setErrhandler = 6, 7, 8, 9, 10
)

// world is MPI_COMM_WORLD as a [Port].
type world struct {
	abi
	rank, size int
	version    string
	f          [len(functions)]uintptr
	losses     [len(lossFunctions)]uintptr // zeros mean that a loss ends all
	args       []uintptr                   // of the call under way: arguments written out would be allocated
	out        *[16]int32                  // results of calls, outside Go's heap
	text       []byte                      // of an error, likewise
	slots      []byte                      // of requests, likewise
	free       []Request
	shrunk     bool
}

// textBytes has room for the longest string of any ABI.
const textBytes = 16 << 10

// maxRequests is how many messages may be under way.
const maxRequests = 1 << 14

// Open loads an MPI library and initialises it. The goroutine is locked to its thread from then on.
func Open(l Launch) (Port, error) {
	runtime.LockOSThread()
	handlers := saveHandlers() // before the library is loaded, since some take signals right then
	handlers.toDefault(syscall.SIGUSR1)
	lib, file, err := load(l.launcher.libraries)
	if err != nil {
		return nil, err
	}
	w := &world{args: make([]uintptr, 7)}
	memory := w.Alloc(4096 + textBytes + 8*maxRequests)
	w.out, w.text, w.slots = (*[16]int32)(unsafe.Pointer(&memory[0])), memory[4096:][:textBytes], memory[4096+textBytes:]
	for i, name := range functions {
		if w.f[i], _ = purego.Dlsym(lib, name); w.f[i] == 0 {
			return nil, fmt.Errorf("%s is no library of MPI: it has no %s", file, name)
		}
	}
	w.findABI(lib)
	if err := w.call(initThread, 0, 0, w.funneled, w.at(0)); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	handlers.restore()
	if err := w.find(); err != nil {
		return nil, err
	}
	if w.size != l.Size {
		return nil, fmt.Errorf("%s (%s) finds %d ranks, and the launcher says that it started %d: it is of another MPI; write the file of its library into %s", file, w.version, w.size, l.Size, LibraryVariable)
	}
	return w, nil
}

// find finds the place of this process in a communicator in which no message is under way.
func (w *world) find() error {
	w.free = w.free[:0]
	for i := range maxRequests {
		w.free = append(w.free, Request(maxRequests-1-i))
	}
	w.call(setErrhandler, w.world, w.errorsReturn)
	err := errors.Join(w.call(commRank, w.world, w.at(0)), w.call(commSize, w.world, w.at(1)))
	w.rank, w.size = int(w.out[0]), int(w.out[1])
	return err
}

func (w *world) Outlives() bool { return w.losses[shrink] != 0 }

func (w *world) Shrink() error {
	purego.SyscallN(w.losses[revoke], w.world) // fails where another rank was first
	if code, _, _ := purego.SyscallN(w.losses[shrink], w.world, w.at(2)); int32(code) != 0 {
		return fmt.Errorf("%s: %s", lossFunctions[shrink], w.errorText(int32(code)))
	}
	w.world, w.shrunk = *(*uintptr)(unsafe.Pointer(&w.out[2])), true
	return w.find()
}

// load loads the first library that there is.
func load(files []string) (lib uintptr, file string, err error) {
	if named := os.Getenv(LibraryVariable); named != "" {
		files = []string{named}
	}
	for _, file = range files {
		if lib, err = purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL); err == nil {
			return lib, file, nil
		}
	}
	return 0, "", fmt.Errorf("no library of MPI is found: %s; install the one of the launcher, or write its file into %s", strings.Join(files, ", "), LibraryVariable)
}

// findABI tells whose library it is.
func (w *world) findABI(lib uintptr) {
	symbol := func(name string) uintptr { a, _ := purego.Dlsym(lib, name); return a }
	w.call(libraryVersion, address(w.text), w.at(0))
	w.version, _, _ = strings.Cut(strings.TrimRight(string(w.text[:w.out[0]]), "\x00\n"), "\n")
	w.out[0] = -1
	if version := symbol("MPI_Abi_get_version"); version != 0 {
		purego.SyscallN(version, w.at(0), w.at(1))
	}
	switch {
	case w.out[0] >= 1:
		w.abi = standardABI
	case symbol("ompi_mpi_comm_world") != 0:
		w.abi = openMPIABI
		for i, name := range lossFunctions {
			if os.Getenv(lossVariable) == "1" {
				w.losses[i] = symbol(name)
			}
		}
		w.world, w.byte_ = symbol("ompi_mpi_comm_world"), symbol("ompi_mpi_byte")
		w.errorsReturn = symbol("ompi_mpi_errors_return")
	default:
		w.abi = mpichABI
	}
}

// at is the address of a result.
func (w *world) at(i int) uintptr { return uintptr(unsafe.Pointer(&w.out[i])) }

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// call makes a call of up to seven words.
func (w *world) call(f int, args ...uintptr) error {
	clear(w.args[copy(w.args, args):])
	r, _, _ := purego.SyscallN(w.f[f], w.args...)
	if code := int32(r); code != 0 {
		return fmt.Errorf("%s: %s", functions[f], w.errorText(code))
	}
	return nil
}

func (w *world) errorText(code int32) string {
	purego.SyscallN(w.f[errorString], uintptr(code), address(w.text), w.at(15))
	return strings.TrimSpace(string(w.text[:max(0, min(int(w.out[15]), len(w.text)))]))
}

func (w *world) Rank() int { return w.rank }
func (w *world) Size() int { return w.size }

func (w *world) Alloc(bytes int64) []byte {
	b, err := syscall.Mmap(-1, 0, int(max(bytes, 1)), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("mpi: %d bytes of memory for messages: %v", bytes, err))
	}
	return b[:bytes]
}

func (w *world) slot(r Request) uintptr { return address(w.slots) + uintptr(r)*w.requestBytes }

// start starts a message in an empty slot.
func (w *world) start(f int, b []byte, peer, tag int) (Request, error) {
	last := len(w.free) - 1
	if last < 0 {
		return 0, fmt.Errorf("%d messages are under way, and no more can be", maxRequests)
	}
	r := w.free[last]
	if err := w.call(f, address(b), uintptr(len(b)), w.byte_, uintptr(peer), uintptr(tag), w.world, w.slot(r)); err != nil {
		return 0, err
	}
	w.free = w.free[:last]
	return r, nil
}

func (w *world) Send(to, tag int, b []byte) (Request, error) { return w.start(isend, b, to, tag) }

func (w *world) Receive(from, tag int, b []byte) (Request, error) {
	return w.start(irecv, b, from, tag)
}

func (w *world) Done(r Request) (bool, error) {
	if err := w.call(test, w.slot(r), w.at(0), w.ignore); err != nil {
		return false, err
	}
	if w.out[0] == 0 {
		return false, nil
	}
	w.free = append(w.free, r)
	return true, nil
}

func (w *world) Abort() { w.call(abort, w.world, 1) }

// Close does not finalise the library after a loss: MPI_Finalize of Open MPI 5.0.11 may wait for the lost rank without end.
func (w *world) Close() error {
	if w.shrunk {
		return nil
	}
	return w.call(finalize)
}
