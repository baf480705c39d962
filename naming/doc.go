// Package naming has one form of the error for an unknown name: the kind of thing, the known names, and
// the one probably meant. [Count] writes numbers of things.
//
// Read first: [Unknown]. It depends on nothing, so that packages with tables of names may use it.
package naming
