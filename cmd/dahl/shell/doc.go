// Package shell tells shells and man about the commands: completions of a command line, the programs for them, and manual pages.
//
// Read first: [Completions], [NewCompletion], [NewMan].
package shell
