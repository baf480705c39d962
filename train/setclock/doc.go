// Package setclock puts the processors and GPUs of this machine to the clocks that a run wants,
// and gives back what was before.
//
// [Here] is this machine. [System.Begin] takes hold of its clocks, [Held.Set] sets some of them,
// and [Held.Restore] gives all back. What was set before is saved in a file of the user's before
// anything is set. So a process that is killed leaves the file behind, and the next one gives the
// clocks back by [System.Recover] or Begin.
//
// The clock of a core is set through Linux's cpufreq: its least and its greatest frequency become
// the wanted one. That of a GPU is locked through the driver's management library, which does not
// tell what was locked before: giving back unlocks it.
package setclock
