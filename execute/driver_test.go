package execute

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"dahl/dag"
	"dahl/execute/driver"
	"dahl/execute/hardware"
	"dahl/execute/host"
	"dahl/kernels"
	"dahl/kernels/calls"
	"dahl/must"
	"dahl/platform"
	"dahl/schedule"
)

// driverUnderTest is a driver with a stream for launches and one for copies in each
// direction, at memory 1 of a platform whose host memory is 0.
type driverUnderTest struct {
	driver.Driver
	t                testing.TB
	code             string // that the device runs
	compute, in, out driver.StreamID
}

func (d *driverUnderTest) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *driverUnderTest) event() driver.EventID {
	d.t.Helper()
	e, err := d.NewEvent()
	d.must(err)
	return e
}

func (d *driverUnderTest) memory(bytes int64) driver.Address {
	d.t.Helper()
	a, err := d.Reserve(bytes)
	d.must(err)
	return a
}

// host is pinned memory.
func (d *driverUnderTest) host(bytes int64) []byte {
	d.t.Helper()
	b := host.AlignedBytes(bytes)
	d.must(d.Pin(host.WholePages(b)))
	return b
}

// await waits for an event as the issue loop would, but not for ever. It counts looks and no
// time, since the whole computer may stand still for a while.
func (d *driverUnderTest) await(e driver.EventID) {
	d.t.Helper()
	for range time.Minute / spinLimit {
		done, err := d.Done(e)
		d.must(err)
		if done {
			return
		}
		time.Sleep(spinLimit)
	}
	d.t.Fatal("the event is not done after a minute")
}

func (d *driverUnderTest) finish(s driver.StreamID) {
	d.t.Helper()
	e := d.event()
	d.must(d.Record(s, e))
	d.await(e)
}

func hostPlane(b []byte, pitch int64) driver.Plane {
	return driver.Plane{Memory: 0, Host: unsafe.Pointer(unsafe.SliceData(b)), Pitch: pitch}
}

func devicePlane(a driver.Address, pitch int64) driver.Plane {
	return driver.Plane{Memory: 1, Device: a, Pitch: pitch}
}

// move issues a copy that is a transfer of its own.
func (d *driverUnderTest) move(s driver.StreamID, to, from driver.Plane, rows, rowBytes int64) {
	d.t.Helper()
	d.must(d.Copy(s, &driver.Copy{To: to, From: from, Rows: rows, RowBytes: rowBytes, Bytes: rows * rowBytes, First: true}))
}

func newDriverUnderTest(t testing.TB, code string, d driver.Driver) *driverUnderTest {
	t.Helper()
	u := &driverUnderTest{Driver: d, t: t, code: code}
	for i, s := range []*driver.StreamID{&u.compute, &u.in, &u.out} {
		var err error
		*s, err = d.NewStream(i > 0)
		u.must(err)
	}
	return u
}

// driverTests is what every driver has to do.
var driverTests = []struct {
	name string
	run  func(*driverUnderTest)
}{
	{"memory", testDriverMemory},
	{"copies of rows", testDriverRows},
	{"fill", testDriverFill},
	{"events order streams", testDriverEvents},
	{"events that never were", testDriverUnrecorded},
	{"time", testDriverTime},
	{"launch", testDriverLaunch},
	{"capture", testDriverCapture},
}

// What is captured is not done; each replay does all of it, after what its stream waited
// for: a block moves on by one slot with each of two copies.
func testDriverCapture(d *driverUnderTest) {
	const slot, rounds = 53, 20
	able, ok := d.Driver.(driver.Capturer)
	if !ok {
		d.t.Fatal("the driver captures nothing")
	}
	a := d.memory(3 * slot)
	back := d.host(3 * slot)
	forward := func(i int) *driver.Copy {
		return &driver.Copy{To: devicePlane(a+driver.Address((i+1)*slot), slot), From: devicePlane(a+driver.Address(i*slot), slot), Rows: 1, RowBytes: slot, Bytes: slot, First: true}
	}
	on, err := able.Capture(d.compute, func() error {
		return errors.Join(d.Copy(d.compute, forward(1)), d.Copy(d.compute, forward(0)), d.Fill(d.compute, a, 1, 0xAA))
	})
	d.must(err)
	arrived, free := d.event(), d.event()
	for r := range rounds {
		d.must(d.Wait(d.in, free))
		d.must(d.Fill(d.in, a, slot, byte(r+1)))
		d.must(d.Record(d.in, arrived))
		d.must(d.Wait(d.compute, arrived))
		d.must(able.Replay(d.compute, on))
		d.must(d.Record(d.compute, free))
	}
	d.await(free)
	d.move(d.out, hostPlane(back, 3*slot), devicePlane(a, 3*slot), 1, 3*slot)
	d.finish(d.out)
	for i := range slot { // the last fill, once on, and the one before, twice
		if back[slot+i] != rounds || back[2*slot+i] != rounds-1 || back[0] != 0xAA {
			d.t.Fatalf("byte %d: %d %d %d", i, back[i], back[slot+i], back[2*slot+i])
		}
	}
}

// Memory comes as zeros, aligned, apart from what was reserved before, and is
// refused where there is not enough.
func testDriverMemory(d *driverUnderTest) {
	const bytes = 1009
	a, b := d.memory(bytes), d.memory(bytes)
	if a%driver.Align != 0 || b%driver.Align != 0 || a < b+bytes && b < a+bytes {
		d.t.Errorf("memory at %#x and %#x", a, b)
	}
	h := d.host(bytes)
	h[17] = 1
	d.must(d.Fill(d.in, b, bytes, 3))
	d.finish(d.in)
	d.move(d.out, hostPlane(h, bytes), devicePlane(a, bytes), 1, bytes)
	d.finish(d.out)
	for i, v := range h {
		if v != 0 {
			d.t.Fatalf("byte %d of new memory is %d", i, v)
		}
	}
	if _, err := d.Reserve(d.Properties().CapacityBytes + 1); !errors.Is(err, driver.ErrMemory) {
		d.t.Errorf("more than the device has: %v", err)
	}
}

// Rows go to the device at one pitch, within it to another and come back at a third; what lies
// between them stays.
func testDriverRows(d *driverUnderTest) {
	const rows, width, hostPitch, devicePitch, thirdPitch, backPitch = 5, 7, 11, 13, 19, 17
	a, b := d.memory(rows*devicePitch), d.memory(rows*thirdPitch)
	from, back := d.host(rows*hostPitch), d.host(rows*backPitch)
	want := make([]byte, len(back))
	for r := range rows {
		for i := range hostPitch {
			from[r*hostPitch+i] = byte(r*hostPitch + i + 1)
		}
		copy(want[r*backPitch:], from[r*hostPitch:r*hostPitch+width])
	}
	d.move(d.in, devicePlane(a, devicePitch), hostPlane(from, hostPitch), rows, width)
	d.finish(d.in)
	d.move(d.out, devicePlane(b+3, thirdPitch), devicePlane(a, devicePitch), rows, width)
	d.move(d.out, hostPlane(back, backPitch), devicePlane(b+3, thirdPitch), rows, width)
	d.move(d.out, hostPlane(back[rows*backPitch-1:], 1), devicePlane(a, 1), 0, 1) // of no bytes
	d.finish(d.out)
	if !bytes.Equal(back, want) {
		d.t.Errorf("got %v, want %v", back, want)
	}
}

func testDriverFill(d *driverUnderTest) {
	const bytes = 97
	a := d.memory(bytes)
	h := d.host(bytes)
	d.must(d.Fill(d.compute, a+13, 29, 0xFF))
	d.finish(d.compute)
	d.move(d.out, hostPlane(h, bytes), devicePlane(a, bytes), 1, bytes)
	d.finish(d.out)
	for i, v := range h {
		want := byte(0)
		if i >= 13 && i < 13+29 {
			want = 0xFF
		}
		if v != want {
			d.t.Fatalf("byte %d is %d, want %d", i, v, want)
		}
	}
}

// A block goes round between two streams, host to device and back, a hundred times, each
// way after an event of the other; the two events are recorded again in every round, all
// of which is issued without a wait on the host. The host changes nothing meanwhile, so
// each round adds one slot: slot r+1 of the host comes from slot r by way of the device.
func testDriverEvents(d *driverUnderTest) {
	const rounds, slot = 100, 101
	a := d.memory(slot)
	h := d.host((rounds + 1) * slot)
	for i := range slot {
		h[i] = byte(i + 1)
	}
	there, back := d.event(), d.event()
	for r := range rounds {
		d.must(d.Wait(d.in, back))
		d.move(d.in, devicePlane(a, slot), hostPlane(h[r*slot:], slot), 1, slot)
		d.must(d.Record(d.in, there))
		d.must(d.Wait(d.out, there))
		d.move(d.out, hostPlane(h[(r+1)*slot:], slot), devicePlane(a, slot), 1, slot)
		d.must(d.Record(d.out, back))
	}
	d.await(back)
	if !bytes.Equal(h[rounds*slot:(rounds+1)*slot], h[:slot]) {
		d.t.Errorf("after %d rounds the block is %v", rounds, h[rounds*slot:(rounds+1)*slot])
	}
}

func testDriverUnrecorded(d *driverUnderTest) {
	e := d.event()
	if done, err := d.Done(e); !done || err != nil {
		d.t.Errorf("an event that was never recorded: done %v, error %v", done, err)
	}
	d.must(d.Wait(d.compute, e))
	d.finish(d.compute)
}

// Time runs forward between two events, and backwards the other way round.
func testDriverTime(d *driverUnderTest) {
	a := d.memory(1 << 16)
	from, to := d.event(), d.event()
	d.must(d.Record(d.compute, from))
	for range 50 {
		d.must(d.Fill(d.compute, a, 1<<16, 1))
	}
	d.must(d.Record(d.compute, to))
	d.await(to)
	there, err := d.Elapsed(from, to)
	d.must(err)
	back, err := d.Elapsed(to, from)
	d.must(err)
	if there <= 0 || back != -there {
		d.t.Errorf("%v passed, and %v the other way", there, back)
	}
}

// A dense layer of 5 samples, 7 features and 3 outputs on device memory gives what the
// reference gives, within a few units of the last place of sums of 7 products below 1.
func testDriverLaunch(d *driverUnderTest) {
	const n, k, m = 5, 7, 3
	buffers := []*dag.Buffer{
		{Name: "y", Type: dag.Float32, Shape: []int{n, m}}, {Name: "x", Type: dag.Float32, Shape: []int{n, k}},
		{Name: "w", Type: dag.Float32, Shape: []int{m, k}}, {Name: "b", Type: dag.Float32, Shape: []int{m}}}
	spec := &calls.Spec{Op: "dense", Type: dag.Float32}
	kernel, _ := kernels.KernelByName("dense")
	call := &driver.Call{Kernel: kernel, Spec: spec, Variant: kernel.DefaultFor(d.code), Worker: -1}
	reference := calls.Call{}
	var host, device [][]byte
	rng := rand.New(rand.NewPCG(3, 37))
	var base []driver.Address
	for i, b := range buffers {
		mode := dag.Read
		if i == 0 {
			mode = dag.Write
		}
		spec.Operands = append(spec.Operands, calls.OperandSpec{Type: b.Type, Mode: mode, Shape: b.Shape})
		h := d.host(b.Bytes())
		for e := range elements[float32](h) {
			elements[float32](h)[e] = rng.Float32() - 0.5
		}
		a := d.memory(b.Bytes())
		d.move(d.in, devicePlane(a, b.Bytes()), hostPlane(h, b.Bytes()), 1, b.Bytes())
		call.Args = append(call.Args, driver.Operand{Base: a, Buffer: b, Mode: mode})
		reference.Args = append(reference.Args, calls.Bind(unsafe.Pointer(unsafe.SliceData(h)), b, nil, mode))
		host, device, base = append(host, h), append(device, d.host(b.Bytes())), append(base, a)
	}
	if call.Variant.WorkspaceBytes != nil {
		call.Work = d.memory(call.Variant.WorkspaceBytes(spec))
	}
	d.finish(d.in)
	l, err := d.Bind(call)
	d.must(err)
	d.must(d.Launch(d.compute, l))
	d.finish(d.compute)
	d.move(d.out, hostPlane(device[0], n*m*4), devicePlane(base[0], n*m*4), 1, n*m*4)
	d.finish(d.out)
	ref, _ := kernel.Variant("ref")
	reference.Work = d.host(ref.WorkspaceBytes(spec))
	ref.Run32(&reference)
	for i, want := range elements[float32](host[0]) {
		if got := elements[float32](device[0])[i]; got-want > 1e-6 || want-got > 1e-6 {
			d.t.Errorf("element %d is %v, want %v", i, got, want)
		}
	}
}

// emulatedPlatform has a memory of 1 MB at an emulated device, over a link of 1 GB/s with
// a latency of 3 µs.
func emulatedPlatform(t testing.TB) *platform.Platform {
	p := node(t, 1, 1)
	p.Links[0].Latency = 3 * time.Microsecond
	must.Do(t, p.Complete())
	return p
}

// openDriver opens the device of a node, through the backend of its kind.
func openDriver(t testing.TB, p *platform.Platform) *driverUnderTest {
	t.Helper()
	runtime.LockOSThread() // the thread ends with the test
	d := must.Get(hardware.Drivers(p, 1)(&p.Devices[1], func() {}))(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return newDriverUnderTest(t, p.Devices[1].Code(), d)
}

func TestEmulatedIsADriver(t *testing.T) {
	for _, test := range driverTests {
		t.Run(test.name, func(t *testing.T) { test.run(openDriver(t, emulatedPlatform(t))) })
	}
}

// A copy of 10,000 bytes over a link of 1 GB/s and 3 µs takes at least 13 µs, in three
// parts as well as in one; a call that the model says takes 70 µs takes at least 70 µs.
func TestEmulatedIsNoFasterThanItsModel(t *testing.T) {
	u := openDriver(t, emulatedPlatform(t))
	a, h := u.memory(10000), u.host(10000)
	e := []driver.EventID{u.event(), u.event(), u.event()}
	u.must(u.Record(u.in, e[0]))
	u.move(u.in, devicePlane(a, 10000), hostPlane(h, 10000), 1, 10000)
	u.must(u.Record(u.in, e[1]))
	at := int64(0)
	for i, rows := range []int64{20, 30, 50} {
		u.must(u.Copy(u.in, &driver.Copy{To: devicePlane(a+driver.Address(at), 100), From: hostPlane(h[at:], 100), Rows: rows, RowBytes: 100, Bytes: 10000, First: i == 0}))
		at += rows * 100
	}
	u.must(u.Record(u.in, e[2]))
	u.await(e[2])
	for i := range 2 {
		took, err := u.Elapsed(e[i], e[i+1])
		u.must(err)
		if took < 13*time.Microsecond-2 { // each part is rounded down
			t.Errorf("copy %d took %v, its route takes 13 µs", i, took)
		}
	}
	b := &dag.Buffer{Name: "x", Type: dag.Float32, Shape: []int{3}}
	x := u.memory(b.Bytes())
	kernel, _ := kernels.KernelByName("relu.dx")
	spec := &calls.Spec{Op: kernel.Op, Type: dag.Float32}
	call := &driver.Call{Kernel: kernel, Spec: spec, Variant: kernel.DefaultFor(calls.GoCode), Worker: -1, Cost: schedule.Cost{Duration: 70 * time.Microsecond, Source: schedule.FromGraph}}
	for i, o := range kernel.Operands {
		buf, mode := *b, dag.Read
		if i == 0 {
			mode = dag.Write
		}
		if o.Kind == kernels.Mask {
			buf.Type = dag.Uint8
		}
		call.Args = append(call.Args, driver.Operand{Base: x, Buffer: &buf, Mode: mode})
	}
	l, err := u.Bind(call)
	u.must(err)
	u.must(u.Record(u.compute, e[0]))
	u.must(u.Launch(u.compute, l))
	u.must(u.Record(u.compute, e[1]))
	u.await(e[1])
	if took, err := u.Elapsed(e[0], e[1]); err != nil || took < 70*time.Microsecond {
		t.Errorf("a call took %v, its model says 70 µs; error %v", took, err)
	}
}
