// Package runs has the commands that read runs and repeat none: compare, report, plot and trace.
//
// Read first: [NewCompare].
package runs
