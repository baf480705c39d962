// Package plots draws schedules and writes them as traces for other viewers.
//
// Read first: [Run], the data of a figure, and [Figures], the table of figures. [Chrome] and
// [Paje] write traces that Perfetto and ViTE open. Package plots/paper draws what knows of no run.
//
// # Invariants
//
//   - A figure is painted before its first byte is written, so a run that cannot be drawn leaves
//     nothing.
//   - Equal input gives equal bytes, PDF included, at every GOAMD64 level: products are converted
//     before they are added, so that the compiler fuses none. Nothing but samples that are pictures is rasterised in SVG and
//     PDF.
//   - A chart of a cluster has its rows node by node (nodes.go).
//   - The size of a figure is bounded. Spans narrower than a column of the picture are drawn as
//     runs of columns, in which every colour keeps its share of the time (see columns.go).
//   - The colours are the set of Okabe and Ito, which readers with any common colour vision can
//     tell apart.
//
// # Units
//
// Axes carry their unit (s, ms, us; B, kB, MB, GB, decimal; W, J).
package plots
