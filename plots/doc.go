// Package plots draws schedules and writes them as traces for other viewers.
//
// Read first: [Run], what a figure is drawn from, and [Figures], the table of
// figures. [Chrome] and [Paje] write traces that Perfetto and ViTE open.
//
// # Invariants
//
//   - a file is SVG, PNG or PDF by its extension, written under a temporary name
//     and renamed, so that a reader never sees half of one
//   - equal input gives equal bytes, PDF included, at every GOAMD64 level: products
//     are converted before they are added, so that none is fused; nothing is
//     rasterised in SVG and PDF
//   - the size of a figure is bounded: what is narrower than a column of the
//     picture is drawn as runs of columns in which every colour keeps its share
//     of the time (see columns.go)
//   - colours are those of Okabe and Ito, told apart by readers with any common
//     colour vision
//
// # Units
//
// Axes carry their unit (s, ms, us; B, kB, MB, GB, decimal; W, J).
package plots
