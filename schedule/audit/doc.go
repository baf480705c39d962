// Package audit derives a schedule again from its graph, its platform and its plan, and refuses one with a fault.
//
// Read first: [Check]. [Fits] is the short check of names and times for those who draw a schedule or add up its joules;
// [Follows] and [FollowsTransfers] compare a schedule with its plan. The package shares no code with the Engine,
// the simulator and the executor.
package audit
