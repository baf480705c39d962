// Package improve makes a plan better by changing it a little many times over.
//
// Read first: [Search]; what a change is in point.go.
package improve
