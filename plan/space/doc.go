// Package space holds the choices of a search before it assigns tasks: sets of devices, with numbers of their units, and
// lowerings of a network, some of which place layers by a strategy. Every choice has a program and costs of its own.
//
// Read first: [Space]. The search for a plan and the check of its proof go through the same choices, and
// neither imports the other.
package space
