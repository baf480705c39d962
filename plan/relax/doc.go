// Package relax finds proofs of lower bounds: it solves the linear relaxation of planning, with the rows of package
// certificate, and returns their multipliers as a [certificate.Proof].
//
// Read first: [Bound], and [Area] for a weaker bound in a fraction of its time; then quotient.go, with one column for all
// equivalent tasks and versions, period.go, with the search for the longest impossible period, and cuts.go, with the search for
// violated rows.
// [Branch] proves more in more time: branch.go splits plans in parts, choose.go finds by what, and product.go
// bounds energy times time.
//
// [Shares] finds the multipliers of bounds for all lowerings, of package shares; cheapest.go finds the tiles that a solution lacks.
//
// Floating-point numbers decide nothing: the proof is added up again in rational numbers, by the package
// that this one does not share code of the search with.
//
// # Sources
//
// Grohe, Kersting, Mladenov, Selman, Dimension reduction via colour refinement, ESA 2014. Queyranne, Schulz,
// Polyhedral approaches to machine scheduling, 1994, for relaxations by start times and work.
package relax
