// Package runs has the commands that read runs and repeat none: compare, report, plot, trace and verify.
//
// Read first: [NewCompare].
package runs
