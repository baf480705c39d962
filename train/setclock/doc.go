// Package setclock sets the clocks of processors and GPUs for a run, and restores the earlier ones
// after it.
//
// [Here] is this machine. [System.Begin] takes hold of its clocks, [Held.Set] sets some of them, and
// [Held.Restore] gives all back. The earlier clocks are saved in a file of the user's before anything
// is set. So a process that is killed leaves the file behind, and the next one restores the clocks by
// [System.Recover] or Begin.
//
// The clock of a core is set through Linux's cpufreq: its least and its greatest frequency become
// the wanted one. The clock of a GPU is locked through the driver's management library. It does not
// tell an earlier lock, so restoring unlocks.
package setclock
