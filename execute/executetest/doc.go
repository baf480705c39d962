// Package executetest has what tests that count the allocations of steady steps share, here
// and at the root. It is imported by tests only and knows nothing of dahl.
package executetest
