// Package improve makes a plan better by local search: it changes the plan a little, many thousand times
// over, and keeps what is better.
//
// Read first: [Search], and [Clocks] for a plan whose tasks stay where they are; a plan as the search changes it in point.go, the changes in moves.go, what an estimate
// counts in evaluate.go.
//
// # Points
//
// A point is a sequence of all tasks that keeps their order, with a worker and a clock for each task. A worker runs its tasks
// in that order. So every point is a plan that can run, and
// every plan is a point. A change moves a task in the sequence and to another worker; exchanges two tasks, or
// all that two workers of a device run from some place on; moves a layer, a chain, all tasks of one kind or all of a device to another device; or gives tasks another
// clock. At the end a linear program chooses the clocks of all tasks for their places and order (clocks.go, package clocks). Where units
// share a clock, or a change takes something, single tasks then get other clocks, until none is better by the estimate.
//
// # Search
//
// Late acceptance hill-climbing goes on from a changed point that is no worse than the point some thousand
// changes before. It compares estimates, since the simulator takes a hundred times as long. In each of up to
// twenty rounds the simulator is asked what the best point by the estimate is worth. If that is better than the incumbent, the
// next round starts there, else at this round's start. Estimates are scaled by the simulator's values of that point. Only
// what the simulator says of a plan becomes the result, and no result is
// worse than the first plan.
//
// # Variants and sleep
//
// In the result the search then looks for calls with faster or more frugal variants (variants.go), and after that for waits
// worth a sleep state (sleep.go). Tasks do not move for the sake of either, but a search from this result times
// calls by their variants.
//
// # The estimate
//
// Tasks are timed by the longest path: a task begins when its worker is free, its predecessors have ended, and its inputs have
// arrived, with dispatch and hand-off as in [schedule.Pace]. Of a steady
// step as many steps are timed as it takes until each task comes as much later as every other, eight at
// most. That is the period, and the events of a period are folded into it to find the power of each moment.
// Units that change their clock together change it in the order of the sequence. In a run a task that comes later may ask
// for another clock sooner.
//
// A copy waits for an engine, which takes copies in the order of a decision (engines.go). On a shared link a copy gets half of the bandwidth
// until the copies before it are done. The simulator knows better: rates are fair, an engine keeps one order in all steps,
// a transfer by way of the host goes in chunks of a certain size.
//
// Left out are sleep, caps, what calls find in caches, and orders for the sake of memory. Of the last there
// are none where memories have room, since no buffers of a plan that is simulated then share bytes.
//
// In one memory without these, where no units share a clock that changes, the estimate is the simulator's time to the nanosecond. Of plans of dahl-cnn,
// lenet5, mlp and cifar-cnn, by HEFT and with one to two hundred random changes, it was exact on
// manycore and, at one clock, on laptop, within 10 % there at several, and within 3 % on emulated (9 % where a step runs alone). On sets of GPUs of server it was off by 1 to 4 % (standard
// deviation of the logarithm, 80 points with 1 to 20 changes each).
//
// # The order of copies
//
// A point has no order of copies of its own. Its plan lists none, so that package place decides it by an estimate of a
// steady step. An engine goes through its copies step by step. Of a step it takes, as soon as it is free, the copy whose reader comes in the earlier step, and then the one
// with the most urgent reader. A copy is ready when its writer has ended and nobody
// needs any more what it overwrites. So a change of the sequence or of workers changes the order of copies
// too, and is judged with the order that follows. No change lets a copy overtake an earlier ready one, or an engine wait for a
// later copy. A plan file may list such an order.
//
// # Limits
//
// Tiles are not searched. A plan of the result has the first one's sleep states where tasks stay on their device.
package improve
