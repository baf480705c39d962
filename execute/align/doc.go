// Package align puts the times of a device's own clock on the clock of a run.
//
// A device's events carry the device's own clock. Only two facts are known of that clock: it never runs
// backwards, and it runs evenly. The host's observations put the events on the clock of the run. A task
// started after the host had issued it, and had ended before the host saw its end. A mark recorded
// between two looks at the host's clock gives both bounds at once; two marks are taken before the first
// task and after the last.
//
// The host's time is then a line over the device's time that keeps all bounds (A. Duda et al.,
// Estimating global time in distributed systems, ICDCS 1987). The drift of a short run is too
// small to be measured, so the slope is 1 if a line of slope 1 keeps the bounds. Otherwise it is
// the slope with the most room between the bounds. The line lies in the middle of that room. A
// run of a minute with bounds of 10 µs shows a drift of a millionth.
//
// If the clock does not run evenly, some bounds stay broken and are then enforced. At a moment d
// of the device, two values hold the line between them: the latest lower bound of the moments
// until d, and the earliest upper bound of the moments from d on. All three never fall with d. So
// the order of the device's events stays as it was. A task never seems to start before its
// predecessors on the host had ended, nor to end after its successors there started. The check of
// a schedule therefore holds by construction and not by luck.
package align
