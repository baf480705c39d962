// Package relax finds proofs of lower bounds: it solves the linear relaxation of planning, whose rows are
// those of package certificate, and gives their multipliers as a [certificate.Proof].
//
// Read first: [Bound], and [Area] for a weaker bound in a fraction of its time; then quotient.go, which makes
// one column of all that no row can tell apart, period.go, which looks for the longest steady step that is too short, and
// cuts.go, which adds rows where a solution violates them.
// [Branch] proves more in more time: branch.go splits plans in parts, choose.go finds by what, and product.go
// bounds energy times time.
//
// Floating-point numbers decide nothing: the proof is added up again in rational numbers, by the package
// that this one does not share code of the search with.
//
// # Sources
//
// Grohe, Kersting, Mladenov, Selman, Dimension reduction via colour refinement, ESA 2014. Queyranne, Schulz,
// Polyhedral approaches to machine scheduling, 1994, for relaxations by start times and work.
package relax
