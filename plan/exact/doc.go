// Package exact finds optimal plans of small graphs, and proves that they are.
//
// Read first: [Search]; the model in model.go, the bounds in bound.go, dominance in memo.go.
//
// # What is searched
//
// The plans of one step of one graph: for each task a worker and a clock, for each worker the order
// of its tasks. A run of a plan starts everything as early as the plan lets it. So a plan has one schedule, and [simulate.Run]
// and [energy.FromSchedule] give its value. Where a
// plan lists no copies or places, package schedule decides them, and so they are no part of the search.
// Neither are sleep states after tasks, nor variants of calls except the price's, but bounds hold for plans with them.
//
// To start early is no loss where units that wait draw the same at each clock and nothing sleeps. With the orders, workers and
// clocks fixed, the joules are then the sum of two terms. The calls and copies draw the same whenever they happen. Everything
// idle draws its power over the makespan, the least if every task starts as early as it can. The best plan is then optimal
// among all schedules that copy each content to a memory once.
//
// # The model
//
// The search works on a model of time and joules in which the least value of a plan is known for
// any part of it. The value of a plan in the model never exceeds its value in the simulator:
//
//   - as in the simulator are orders and contents between tasks, dispatch, changes of the clock of a unit, the joules of calls,
//     copies and changes, the power of idle units, links and host, and devices that are off. So are copies over links
//     without sharing (fatpipes) of all that a task wrote of a storage;
//   - copies by way of the host's memory take no more than in the smallest parts: the time of the whole
//     way at the pace of its slowest link;
//   - left out, and so bounds from below, are copy engines, the sharing of links and the grouping of copies for several readers
//     in parts, hand-off and waking, sleep, caps, caches (a call takes its least time), a common clock of units, copies for a
//     next step, overwriting during a copy, and orders for the sake of memory. A unit draws the
//     least that it can at any clock or asleep, and of power by the number of busy units the least of
//     all numbers counts.
//
// Every complete plan that may be better than the best is simulated. Only what the simulator says
// becomes the result.
//
// # The proof
//
// The first part of the search uses dominance (memo.go) and takes equal devices for one another (twins.go),
// which holds in the model. Let M be the least value in the model of any plan. The search finds a plan of
// value M, or prunes all of them since M is no less than the value of the best plan known. So if every simulated plan had its
// value of the model, the best is optimal, whatever the model leaves out: else some plan had a lower value, its value in the
// model would be lower too, and
// the search would have met it.
// Otherwise the least model value of those that did not is a lower bound, and a second part looks at
// all plans, without dominance. Both prune by bounds only. Where devices have sleep states and joules count
// the second part finds plans and proves nothing: that no plan without sleep is better says nothing of one with sleep.
// So it is where another variant of a call takes less or draws less. In the model the call then takes the least of all variants,
// and draws the least.
//
// Times are whole nanoseconds. Joules are sums of floating-point numbers: two that differ by less than
// 1e-12 of them count as equal.
//
// # Limits
//
// One graph of up to 64 tasks, one step, memories of up to 64 and devices of up to 64. Equal input and
// equal nodes give equal results.
package exact
