// Package flags has the options that decide the results of a run: their flags, their checks, and the loading of machines,
// networks and data.
//
// Read first: [Options], [AddWorkFlags].
package flags
