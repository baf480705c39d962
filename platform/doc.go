// Package platform describes a machine: devices, memories, links, powers and how
// long kernels take on them.
//
// Read first: [Platform]. [Load] reads the TOML form; [Detect] describes the
// machine that the program runs on; [Platform.Estimate] answers what a kernel
// call costs, from measured models, a fit through them, or a roofline.
//
// # Invariants (checked by [Platform.Check])
//
//   - names of devices, memories, links and workers are unique
//   - every device has a memory; bandwidths, speeds and counts are positive;
//     powers, latencies and capacities are not negative and finite
//   - a route names links that exist, in order; two memories of unlike devices
//     that exchange data have one
//
// # Units
//
// Bytes and bytes per second, flops per second, watts, joules, time.Duration.
// Every quantity in a TOML file carries its unit. Prefixes are decimal
// (1 GB = 10^9 B) unless binary ones are written (1 GiB = 2^30 B).
//
// # Limits
//
// At most 64 memories. Clocks other than the first are read and kept for
// planners; models are chosen at the device's first clock.
package platform
