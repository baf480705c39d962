// Package platform describes a machine: devices, memories, links, powers and how
// long kernels take on them.
//
// Read first: [Platform]. [Load] reads the TOML form; [Platform.Estimate] answers
// what a kernel call costs, from measured models, a fit through them, or a
// roofline. Package execute describes the machine that the program runs on.
// A platform that is built in code is finished by [Platform.Complete].
//
// # Invariants (checked by [Platform.Check])
//
//   - names of devices, memories, links and workers are unique
//   - every device has a memory; bandwidths, speeds and counts that are given
//     are positive; powers, latencies and capacities are finite and not negative
//   - every power has a source, or is absent
//   - the host's memory has a way to that of every device and back, unless the device is
//     marked Unreachable; at most one memory is marked as the host's
//   - a route names links that exist, in order, and there is one for a pair of
//     memories at most; a pair without one goes through other memories
//   - a call has one model for each number of busy units
//
// # Units
//
// Bytes and bytes per second, flops per second, watts, joules, time.Duration.
// Every quantity in a TOML file carries its unit. Prefixes are decimal
// (1 GB = 10^9 B) unless binary ones are written (1 GiB = 2^30 B); F is one
// floating-point operation.
//
// # Limits
//
// At most 64 memories, one machine in a file. Models are chosen at the clock in
// force, the device's first; [Platform.WithClock] puts another one in force.
package platform
