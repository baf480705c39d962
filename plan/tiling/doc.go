// Package tiling holds the ways to cut the layers of a network into tasks, as values that a search compares and varies.
//
// Read first: [Tiling], [Network].
package tiling
