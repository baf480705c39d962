// Package experiment describes grids of runs, and what came out of them.
//
// Read first: [File], an experiment file that was read. Its axes span a grid, whose points are
// [Cell]s: each is one command line of dahl and one run directory. A [Table] has a row of results
// for each cell; it is written as CSV, and as Markdown with medians and intervals, and [Table.Charts]
// says what to draw of it.
//
// What the keys of a file mean is left to whoever runs the cells: they are names of flags.
//
// # Files
//
//	name = "batches"
//	[run]                             # flags of all cells
//	command = "execute"               # simulate, plan or execute
//	repeats = 3                       # runs of every cell, all cells once before any twice
//	epochs = 2
//	[grid]                            # an axis for each key: a cell for each combination
//	batch = [16, 64]
//	workers = [1, 2]              # files by a pattern: graph = ["graphs/*.stg"]
//	[[case]]                          # an axis whose values set several flags together
//	name = "digits"
//	model = "digits-cnn"
//	data = "digits"
//	[small]                           # changes for --small: a list replaces an axis batch = [16]
//	[[figure]]                        # what to draw; without any, what fits the axes kind = "bars"
//	x = "batch"
//
// # Order
//
// Loops are nested as the axes are written, the first being the outermost, but for three. Repeats
// are around all others and seeds around all but them, so that what disturbs a machine for a while
// does not fall on all runs of one cell. Contestants are the innermost, so that they run in turn.
package experiment
