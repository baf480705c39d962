// Package energy says how many joules a schedule costs, and where they go.
//
// Read first: [FromSchedule], which integrates the platform's powers over a
// schedule of either world, and [Traces], the same powers over time. [Meter] is a
// source of measured joules; [OpenRAPL] reads the processor's own, and [OpenGPUs] those of
// NVIDIA's GPUs, in programs that are built with the tag cuda.
//
// # Model
//
// At every moment a device draws platform.BusyTotal of the number of its units
// that run something; a call whose joules are known draws its unit's idle power
// and those joules spread over its duration instead. A link draws its idle power all the
// time, and above it in proportion to the share of its bandwidth that is used (links.go).
// The host's baseline is drawn all the time. Each joule has one cause: a unit that waits,
// or the idle power of a link (idle), a unit that runs (busy, its own idle power included),
// what a link draws above its idle power (transfer), the baseline (host).
//
// A run ends with its last task: what still moves afterwards draws nothing here.
//
// Tasks that run at the same time share the power of their device: each busy unit
// has its own idle power and an equal part of what the device draws above idle,
// and the tasks on one unit have equal parts of that. What a link draws above idle is
// that of each transfer by its bytes.
//
// # Invariants
//
//   - TotalJoules is the sum of the causes, of devices, links and host, and the
//     integral of the powers of Traces
//   - a modelled joule is never shown as measured
//
// # Units
//
// Joules, watts; times are time.Duration from the start of the run.
package energy
