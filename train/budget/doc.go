// Package budget compares the memory needs of a training with the memory left to this
// process.
//
// Read first: [Available], then [Check].
//
// # Limits
//
// On systems other than Linux nothing is known, and every amount fits. What other processes take
// after the question is not foreseen.
package budget
