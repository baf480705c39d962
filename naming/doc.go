// Package naming reports unknown names in one way: the kind of name, the known ones, and the one that was probably
// meant. [Count] says how many things there are.
//
// Read first: [Unknown]. It depends on nothing, so that packages with tables of names may use it.
package naming
