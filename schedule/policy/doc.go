// Package policy holds the policies of dahl: algorithms that make a [schedule.Plan] of a
// [schedule.Problem].
//
// Read first: [All], the table, and heft.go. A policy of another module is a type with the two methods of
// [schedule.Policy]; [schedule.NewFit] tells it which workers may run a task.
//
// [Pipelines] are the policies for graphs with stages: they plan as [HEFT] does, in the order of micro-batches that pipelines have.
//
// An [Online] policy decides while a program runs, where all tasks run in one memory. Its [Scheduler] sees tasks
// become ready, and the [Engine] passes its decisions to the simulator or the executor. For several memories the
// Engine runs once over expected times, and its commands become the plan ([Online.Plan]).
package policy
