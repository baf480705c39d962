// Package meter reads the counters of joules of this machine, and believes only plausible readings.
//
// Read first: [Meter], a source of measured joules. [OpenRAPL] reads the processor's counters. [NVML] is the library of
// NVIDIA's GPUs, in programs built with the tag cuda. A [Recorder] reads meters during a run, and
// [MeasureCalls] during repeated calls. [MeterState] is the verdict on a counter (plausible.go).
//
// # Invariants
//
//   - A joule that cannot be true is in no reading: plausible.go states the rules.
//   - Counters that show the same numbers are one.
//   - A meter that fails is named, and the others are read.
//
// # Units
//
// Joules, watts; times are seconds or time.Duration on the monotonic clock.
//
// # Limits
//
// A counter may wrap once between two readings. A later reading makes the interval unknown.
package meter
