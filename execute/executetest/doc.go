// Package executetest holds helpers for tests that count the allocations of steady steps, in
// package execute and at the root. Only tests import it. It knows nothing of dahl.
package executetest
