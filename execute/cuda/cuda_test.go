//go:build cuda

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"dahl/execute/driver"
	"dahl/kernels/offload"
)

// open opens device 0 in the test's thread, or skips the test where there is none.
func open(t *testing.T) *Device {
	t.Helper()
	runtime.LockOSThread() // the test's goroutine ends with its thread
	d, err := Open(0)
	if errors.Is(err, ErrNoDevice) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		var e *Error
		if err := d.Close(); err != nil && !(errors.As(err, &e) && e.Lost()) {
			t.Error(err)
		}
	})
	return d
}

// emulated skips tests of what only the test driver does: faults on demand.
func emulated(t *testing.T, d *Device) {
	t.Helper()
	if !strings.HasPrefix(d.Name, "Test device") {
		t.Skipf("needs the test driver, not %s", d.Name)
	}
}

// pinned is memory of the host for asynchronous copies, outside of Go's heap.
func pinned(t *testing.T, bytes int) []byte {
	t.Helper()
	size := (bytes + os.Getpagesize() - 1) / os.Getpagesize() * os.Getpagesize()
	m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	if own, err := Pin(m); err != nil || !own {
		t.Fatal(own, err)
	}
	t.Cleanup(func() {
		if err := errors.Join(Unpin(m), syscall.Munmap(m)); err != nil {
			t.Error(err)
		}
	})
	return m[:bytes]
}

func hostPlace(m []byte, pitch int64) driver.Plane {
	return driver.Plane{Host: unsafe.Pointer(&m[0]), Pitch: pitch}
}

// view reads the bytes as elements.
func view[T any](m []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&m[0])), len(m)/int(unsafe.Sizeof(zero)))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// bench is a device with the probe's module, a stream, and room for operands.
type bench struct {
	*testing.T
	device   *Device
	stream   Stream
	host     []byte // of all operands
	operands []driver.Address
}

const operandBytes = 1 << 16

// newBench gives a bench with three operands of operandBytes, x, y and z.
func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, device: open(t)}
	ptx, err := os.ReadFile(fmt.Sprintf("testdata/probe.sm_%d.ptx", min(b.device.Capability/5*5, 80)))
	must(t, err)
	b.device.modules["probe"], err = cu.LoadData(string(ptx))
	must(t, err)
	b.stream, err = b.device.NewStream()
	must(t, err)
	b.host = pinned(t, 3*operandBytes)
	// Before the host's memory goes; a device that is lost copies no more.
	t.Cleanup(func() { _ = b.device.Synchronize() })
	base, err := b.device.Alloc(3 * operandBytes)
	must(t, err)
	for i := range 3 {
		b.operands = append(b.operands, base+driver.Address(i*operandBytes))
	}
	return b
}

// at is the host's side of an operand.
func (b *bench) at(i int) []byte { return b.host[i*operandBytes:][:operandBytes] }

func (b *bench) upload(s Stream, i int) {
	must(b.T, s.Copy(driver.Plane{Device: b.operands[i]}, hostPlace(b.at(i), 0), operandBytes, 1))
}

func (b *bench) download(s Stream, i int) {
	must(b.T, s.Copy(hostPlace(b.at(i), 0), driver.Plane{Device: b.operands[i]}, operandBytes, 1))
}

// probeParams mirrors ProbeParams of probe.cu.
type probeParams struct {
	X, Y, Z uint64
	N, Mode int32
}

// prepare makes a launch of a probe ready.
func (b *bench) prepare(symbol string, n, mode int, grid, block, shared uint32) Launches {
	b.Helper()
	l, err := b.device.Prepare([]offload.Launch{{
		Module: "probe", Symbol: symbol, Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}, SharedBytes: shared,
		Params: offload.Params(probeParams{
			uint64(b.operands[0]), uint64(b.operands[1]), uint64(b.operands[2]), int32(n), int32(mode)}),
	}})
	must(b.T, err)
	b.Cleanup(l.Free)
	return l
}

// run uploads all operands, launches a probe and downloads all.
func (b *bench) run(symbol string, n, mode int, grid, block, shared uint32) {
	b.Helper()
	for i := range b.operands {
		b.upload(b.stream, i)
	}
	must(b.T, b.stream.Launch(b.prepare(symbol, n, mode, grid, block, shared)))
	for i := range b.operands {
		b.download(b.stream, i)
	}
	must(b.T, b.stream.Synchronize())
}

func TestErrors(t *testing.T) {
	b := newBench(t)
	_, total, err := b.device.Memory()
	must(t, err)
	_, err = b.device.Alloc(total + 1)
	var e *Error
	if !errors.As(err, &e) || !e.OutOfMemory() || e.Lost() || e.Error() != "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" {
		t.Errorf("more than there is: %v", err)
	}
	if _, err = b.device.Prepare([]offload.Launch{{Module: "probe", Symbol: "nothing"}}); !errors.As(err, &e) || e.Name != "CUDA_ERROR_NOT_FOUND" {
		t.Errorf("no such kernel: %v", err)
	}
	if _, err := b.device.Prepare([]offload.Launch{{Module: "probe", Symbol: "probe_add", SharedBytes: 1 << 20}}); err == nil {
		t.Error("1 MiB of shared memory was allowed")
	}
	if own, err := Pin(b.host[:os.Getpagesize()]); own || err != nil {
		t.Errorf("memory that is pinned already: %v %v", own, err)
	}
	emulated(t, b.device)
	heap := make([]byte, 16)
	if err := b.stream.Copy(driver.Plane{Device: b.operands[0]}, hostPlace(heap, 0), 16, 1); err == nil {
		t.Error("an asynchronous copy of memory that is not pinned was taken")
	}
	bad, err := b.device.Prepare([]offload.Launch{{Module: "probe", Symbol: "probe_add",
		Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: binary.LittleEndian.AppendUint64(nil, 1)}})
	must(t, err)
	defer bad.Free()
	if err := b.stream.Launch(bad); err == nil {
		t.Error("a launch with too few bytes of parameters was taken")
	}
}

// The devices of the test driver reach each other, asked once or again; what is held of
// the peer is given back when the device closes.
func TestReachPeer(t *testing.T) {
	d := open(t)
	emulated(t, d)
	for range 2 {
		if can, err := d.ReachPeer(1); err != nil || !can {
			t.Fatalf("device 1 can be reached: %v, %v", can, err)
		}
	}
	if _, err := d.ReachPeer(97); err == nil {
		t.Error("device 97 can be reached")
	}
}
