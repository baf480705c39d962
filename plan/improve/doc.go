// Package improve makes a plan better by local search: it changes the plan a little, many thousand times
// over, and keeps what is better.
//
// Read first: [Search]; a plan as the search changes it in point.go, the changes in moves.go, what an estimate
// counts in evaluate.go.
//
// # Points
//
// A point is one sequence of all tasks in which each comes after those that it waits for, with a worker and
// a clock for each task. A worker runs its tasks in that order. So every point is a plan that can run, and
// every plan is a point. A change moves a task in the sequence and to another worker; exchanges two tasks, or
// all that two workers of a device run from some place on; moves a layer, a chain, all tasks of one kind or all of a device to another device; or gives tasks another
// clock. At the end no other clock of a single task is better by the estimate: slack has been reclaimed.
//
// # Search
//
// Late acceptance hill-climbing goes on from a changed point that is no worse than the point some thousand
// changes before. It compares estimates, since the simulator takes a hundred times as long. In each of up to
// twenty rounds the simulator is asked what the best point by the estimate is worth. If that is better than
// what was known, the next round starts there, else where this one did, and estimates are scaled by what the
// simulator said of that point. Only what the simulator says of a plan becomes the result, and no result is
// worse than the first plan.
//
// # Variants and sleep
//
// What the search ends with is then looked through for calls that other variants run in less time or with fewer joules
// (variants.go), and after that for waits of units that are worth a sleep state (sleep.go). Tasks do not move for the sake of
// either, but the next search that begins with the result times its calls by the variants that it has.
//
// # The estimate
//
// Tasks are timed by the longest path: a task begins when its worker is free, the tasks that it waits for
// have ended, and what it reads has arrived, with dispatch and hand-off as in [schedule.Pace]. Of a steady
// step as many steps are timed as it takes until each task comes as much later as every other, eight at
// most. That is the period, and what happens in a period is folded into it to find the power of each moment.
// Units that change their clock together change it in the order of the sequence. In a run a task that comes later may ask
// for another clock sooner.
//
// A copy waits for an engine, and engines take what has been ready longest. A copy gets half of a link that
// others share with it until what they had left is done. The simulator knows better: rates are fair, an
// engine's order is that of an estimated steady step, a move by way of the host goes in parts of a certain
// size.
//
// Left out are sleep, caps, what calls find in caches, and orders for the sake of memory. Of the last there
// are none where memories have room, since no buffers of a plan that is simulated then share bytes.
//
// In one memory without these, where no units share a clock that changes, the estimate is the simulator's time to the nanosecond. Of plans of dahl-cnn,
// lenet5, mlp and cifar-cnn, by HEFT and with one to two hundred random changes, it was exact on
// manycore and, at one clock, on laptop, within 10 % there at several, within 3 % on emulated (9 % where a step runs alone) and mostly within 10 % on server, at worst
// 19 %.
//
// # The order of copies
//
// A point has no order of copies of its own. Its plan lists none, so that package place decides it by an estimate of a
// steady step: an engine takes the copy that has been ready longest, and of several the one whose reader comes
// first, by step and then by place in the list of its worker. A copy is ready when its writer has ended and nobody
// needs any more what it overwrites. So a change of the sequence or of workers changes the order of copies
// too, and is judged with the order that follows. What it cannot reach is an order in which a copy overtakes one
// that was ready before, or an engine waits for one that is to come. A plan file may list such an order.
//
// # Limits
//
// Tiles are not searched. A plan of the result has the first one's sleep states where tasks stay on their device.
package improve
