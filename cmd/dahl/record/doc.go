// Package record has what a run leaves in its directory beside results: the manifest, from which it can be repeated, the recipe, by
// which a training goes on, and the summary, which --json prints. It reads runs back.
//
// Read first: [Manifest], [Summary], [LoadRun].
package record
