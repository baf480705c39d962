// Package watch shows a training while it runs: on a terminal as a line or a page, elsewhere as a line now and then.
//
// Read first: [Watcher], and history in status.go.
package watch
