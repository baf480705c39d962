// Package platform describes a machine, or a cluster of several: devices, memories, links, powers and how long kernels
// take on them.
//
// Read first: [Platform]. [Load] reads the TOML form. [Platform.Estimate] gives the cost of a
// kernel call from measured models, a fit through them, or a roofline. [Platform.Complete]
// finishes a platform that is built in code. Package execute describes the machine on which the
// program runs.
//
// # Invariants (checked by [Platform.Check])
//
//   - Names of devices, memories, links and workers are unique.
//   - Every device has a memory. Given bandwidths, speeds and counts are positive. Powers,
//     latencies and capacities are finite and not negative.
//   - Every power has a source, or is absent.
//   - The memories of a node follow one another, in the order of the nodes. Routes lead within a node or between two;
//     wires and switches are the network, and the switches are the last links.
//   - The host's memory has a way to the memory of every device and back, unless the device is marked
//     Unreachable. At most one memory of a node is marked as the host's.
//   - A route names existing links, in order. A pair of memories has at most one route; a pair
//     without one exchanges data through other memories.
//   - A call has one model for each number of busy units.
//
// # Units
//
// Bytes and bytes per second, flops per second, watts, joules, time.Duration. Every quantity in a
// TOML file carries its unit. Prefixes are decimal (1 GB = 10^9 B) or binary (1 GiB = 2^30 B); F
// is one floating-point operation.
//
// # Limits
//
// A device has one clock in force for a whole run: its
// first, or the one that [Platform.WithClock] chose.
package platform
