// Package flags has the options that decide what a run computes: the flags that set them, their checks, and the machines,
// networks and data that they name.
//
// Read first: [Options], [AddWorkFlags].
package flags
