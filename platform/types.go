package platform

import "time"

// Indices into the flat arrays of one Platform.
type (
	MemoryID int32
	DeviceID int32
	WorkerID int32
	LinkID   int32
)

// Platform is a machine, or a cluster of several.
type Platform struct {
	Name      string
	HostPower Quantity // watts drawn all the time, without the devices and the nodes of a cluster; see HostWatts
	CapWatts  float64  // of all of it at every instant, the host included; zero means none
	// BySize: flows share links in inverse proportion to FlowTime of ShareBytes on their routes, and not equally.
	BySize     bool
	ShareBytes int64
	// LeftOff names the devices left out by Select that are off; their OffWatts are the host's.
	LeftOff []string
	// LeftAsleep names the devices with sleeping units left out by Select; their watts are the host's.
	LeftAsleep []string

	Nodes    []Node // none where the platform is one machine
	Memories []Memory
	Devices  []Device
	Workers  []Worker // the units of all devices, in the order of the devices
	Links    []Link
	Routes   []Route
	Wires    []Wire // of the network between nodes
	Models   []Model

	ways *ways // between memories; nil until Complete
}

// Quantity is a number with its source.
type Quantity struct {
	Value  float64
	Source Source
}

// Source says how much to trust a number.
type Source string

// The sources.
const (
	Measured  Source = "measured"
	Datasheet Source = "datasheet"
	Guess     Source = "guess"
)

// Memory is a place where buffers live.
type Memory struct {
	Name                 string
	CapacityBytes        int64   // zero means not limited
	BandwidthBytesPerSec float64 // of its devices together; zero means not known, so no roofline
	Host                 bool    // marks the host's memory; at most one of a node: see Platform.HostOf
	Node                 NodeID  // 0 where the platform is one machine
}

// Device is a kind of unit and how many there are: eight like cores, one GPU.
type Device struct {
	Name  string
	Kind  string // CPU, CUDA or Emulated
	Count int
	// Whole is how many units the machine has, of which Count are selected. Zero means Count. The
	// variants of kernels are chosen for all of them, so that results do not depend on Count.
	Whole  int
	Memory MemoryID

	FlopsPerSec map[string]float64 // by element type, of one unit
	L2Bytes     int64              // per unit
	L3Bytes     int64              // shared by the units
	Dispatch    time.Duration      // from a task being ready to its kernel starting

	// Handoff is the time beyond Dispatch that a waiting unit needs to learn of the end of
	// another unit's task. After a wait of WakeAfter it sleeps, and learns of the end after Wake
	// instead. Zero: no time, and it never sleeps.
	Handoff         time.Duration
	WakeAfter, Wake time.Duration
	// HandoffToCPU is the time that a waiting unit needs, instead of its own Handoff, to learn of
	// the end of a task or copy on this device, since the host has to see the end first. Units of
	// devices that have a HandoffToCPU themselves learn of it as of their own tasks. Zero means the
	// waiting unit's own Handoff.
	HandoffToCPU time.Duration
	// Timing is how much longer a task takes in steps with timed tasks, on a device that is
	// no processor. The measured times of its models contain it; steps that are not recorded do
	// without. Zero means nothing, or not measured.
	Timing time.Duration
	// RunSpread is how far equal runs differ: the standard deviation of the time of a step from
	// run to run, relative to the time. It moves all calls of a run together, unlike their
	// distributions.
	RunSpread float64
	// FirstUse is the one-time cost of the first use of the device. No predicted or measured run
	// contains it.
	FirstUse FirstUse

	CopyEnginesIn, CopyEnginesOut int // copies into and out of its memory at once; zero means not limited
	Streams                       int // noted only: a unit runs one task at a time; zero means not said

	// Ordinal is the number, from 0, that a driver of the system gives the device, if its kind is
	// Numbered. If the ordinals of a platform are all 0, Complete numbers the devices in their order.
	Ordinal int
	// Fault is the failure that an emulated device is to have.
	Fault DeviceFault
	// PlacedOnly keeps the units for tasks that are placed on them by name or kind.
	PlacedOnly bool
	// Unreachable allows that no route leads from the host's memory to the device's, or none
	// back.
	Unreachable bool

	IdleWatts   float64   // one unit, idle
	Busy        BusyPower // with n of Count units busy the device draws Watts(clock, n)
	PowerSource Source    // empty means that no power is known
	PowerMeter  string    // that measured the power; empty means not said
	PowerSpread float64   // of repeated measurements, largest minus smallest over the median; zero means not said
	CapWatts    float64   // of the whole device at every instant; zero means none
	// MayBeOff: all units together draw OffWatts in a run that does not use the device at all.
	MayBeOff bool
	OffWatts float64

	// Clocks are the settings of the device. The first is its own: its scale is 1, its powers are
	// the two above, and speeds are those at it. Empty: one setting without a name.
	Clocks []Clock
	// AtClock is the clock in force, see Platform.WithClock. A plan may choose others for some tasks.
	AtClock ClockID
	// ClockHeld says that somebody has chosen the clock in force, so that a search gives tasks no other. No
	// file says it.
	ClockHeld bool
	// A clock changes while nothing runs in its domain: on the unit if UnitClocks, else on the whole
	// device. Switch is the time and the joules of such a change.
	UnitClocks bool
	Switch     Transition
	// Sleeps are the sleep states of a unit, from light to deep.
	Sleeps []SleepState
}

// FirstUse is the price paid once before a device works. Zeros mean nothing, or not measured.
type FirstUse struct {
	Context time.Duration // opening the device
	// Kernels is the time to load all measured kernels, plus the excess of each first call over a
	// later one.
	Kernels time.Duration
	// MemoryBytesPerSec is how fast its memory, and as much pinned memory of the host, is
	// reserved and first written.
	MemoryBytesPerSec float64
}

// DeviceFault is a failure on purpose, to try out how a run survives it.
type DeviceFault struct {
	Kind  string // FaultLost or FaultMemory; empty means none
	After int    // launches that succeed after the device was opened; the next one fails
}

// The kinds of DeviceFault.
const (
	FaultLost   = "lost"   // the device stops and never answers again
	FaultMemory = "memory" // the launch is refused for lack of memory
)

// BusyPower is the power of the busy units of a device. If FirstWatts and AllWatts are set, it is
// the power of the whole device, linear from one busy unit to all. Otherwise each busy unit draws
// UnitWatts.
type BusyPower struct {
	UnitWatts            float64
	FirstWatts, AllWatts float64
	WholeDevice          bool
}

// Clock is a frequency setting of a device.
type Clock struct {
	Name  string
	Scale float64 // of speed, relative to the first clock
	Idle  float64 // watts of one unit
	Busy  BusyPower
	// FrequencyHz is the frequency to set on a device that is not emulated, see package
	// [dahl/train/setclock]. Zero means not said, so that nobody can set it.
	FrequencyHz float64
}

// Worker is one unit of a device: a core, a GPU. It runs one task at a time.
type Worker struct {
	Name   string
	Device DeviceID
	Index  int // within its device
}

// Sharing says how flows through a link share its bandwidth.
type Sharing uint8

// The kinds of sharing: one capacity for both directions, one per direction, none.
const (
	Shared Sharing = iota
	Duplex
	Fatpipe
)

// Link carries bytes between memories.
type Link struct {
	Name string
	// Switch marks a switch of a network. Each flow through it crosses it once. The switches are
	// the last links of a platform.
	Switch               bool
	BandwidthBytesPerSec float64
	Latency              time.Duration
	Sharing              Sharing
	IdleWatts, BusyWatts float64
	PowerSource          Source
	Sleeps               []SleepState // from light to deep
}

// Route is the links between two memories, in order from From to To. It may name a
// link more than once.
type Route struct {
	From, To MemoryID
	Links    []LinkID
	OneWay   bool
}

// Model is the measured cost of a kernel call on a device.
type Model struct {
	Op, Variant, Type string
	Device            string // name or kind
	Clock             string // empty means the first of the device
	Shape             string
	// Compute is the part of the time that follows the clock, up to 1. 0 means by work and roofline.
	Compute float64
	Active  int // units of the device that were busy while it was measured

	// MedianNs and P95Ns are times by itself, for comparing variants, with operands that the
	// second-level cache has lost.
	MedianNs, P95Ns float64
	// WarmNs and FarNs are times with the operands of the previous call, and with operands that
	// all caches have lost. 0 means not measured.
	WarmNs, FarNs float64
	Count         int
	Distribution  Distribution
	Unsteady      bool // the times never settled while it was measured

	// StepNs is the mean inside real training steps, among neighbours. Zero means not measured. Where
	// known, it is the expected time of a call. FirstNs is the mean in the first step of a run,
	// which touches memory for the first time.
	StepNs, FirstNs  float64
	StepDistribution Distribution

	Joules         float64 // per call above idle; zero means not measured
	WorkspaceBytes int64
	Flops          float64 // of the call, for the fit through several shapes
	MovedBytes     int64
}
