// Package report writes runs as one HTML file that opens without a network: a timeline of every
// task with what it waited for, power, energy, memory and clocks on the same axis, kernels and
// provenance.
//
// Read first: [Run], the data of a report, and [Write]. The files in page run in the browser.
//
// # Invariants
//
//   - The page computes no number of its own meaning: causes, curves, joules and kernels come from
//     the packages that print them elsewhere, and the page lays them out.
//   - Equal input gives equal bytes.
//   - The page asks for nothing: its security policy forbids every request.
//   - Nothing of a run reaches the page as HTML. Names are text inside the data.
//
// # Form of the data
//
// The data are base64 of a zlib stream, in an element of the page. The stream is the length of a
// JSON object as an unsigned varint, the object, and then columns of numbers, one after another. The
// object's "columns" has the kind and the length of each, and its other values name columns by
// their number. A column of kind "i" has integers as signed varints, one of kind "d" has each as
// the difference to the one before, and one of kind "f" has 32-bit floats, all lowest bytes first,
// then all next ones, which compresses better.
//
// A name that differs from others in its numbers only is a pattern and those numbers: of a hundred
// thousand tasks there are some dozens of patterns.
//
// # Units
//
// Times are whole nanoseconds, sizes bytes. What summaries have in seconds stays in seconds.
package report
