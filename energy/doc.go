// Package energy computes how many joules a schedule costs, and where they go.
//
// Read first: [FromSchedule]. It integrates the platform's powers over a simulated or measured
// schedule. [Traces] gives the same powers over time. Package energy/meter has the meters, whose
// readings [Report.AddReadings] takes. [Joules] is the total alone.
//
// # Model
//
// A device draws [platform.Device.Watts] of the number of its busy units. A call with joules of its
// own draws its unit's idle power, and its joules spread over its duration, instead. A link draws
// its idle power all the time, and more in proportion to the used share of its bandwidth
// (links.go). The host draws its baseline all the time.
//
// A node of a cluster has the joules of its host, its devices and its links (nodes.go).
//
// Each joule has one cause:
//
//   - idle: a unit that waits, or the idle power of a link
//   - busy: a unit that runs, its own idle power included
//   - transfer: the power of a link above idle
//   - host: the baseline
//
// A run ends with its last task. Movements after that draw nothing here.
//
// Tasks that run at the same time share the power of their device. Each busy unit has its own
// idle power and an equal part of the device's power above idle; the tasks on one unit have equal
// parts of that. Transfers share a link's joules above idle by their bytes.
//
// # Invariants
//
//   - TotalJoules is the sum over the causes, the sum over devices, links and host, and the
//     integral of Traces. A test compares each consumer with the power of every nanosecond by
//     the definition above (TestJoulesAddUp).
//   - A modelled joule is never shown as measured.
//
// # Units
//
// Joules, watts; times are time.Duration from the start of the run.
package energy
