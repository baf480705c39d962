// Package naming says in one way that a name is not known: what it is, which names there are, and
// which of them was probably meant. [Count] says how many things there are.
//
// Read first: [Unknown]. It depends on nothing, so that packages with tables of names may use it.
package naming
