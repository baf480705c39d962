// Package record has the descriptions in a run directory: the manifest, from which the run can be repeated; the recipe, by
// which a training goes on; and the summary, which --json prints. It reads runs back.
//
// Read first: [Manifest], [Summary], [LoadRun].
package record
