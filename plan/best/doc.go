// Package best searches a space for the plan with the least value of an objective, and proves how far the value may be above the least.
//
// Read first: [Find]. Every choice of a set of devices and a lowering has a program with costs of its own. The search begins with the first choice in the rank
// of a model, and all policies plan on all devices. Of each sort of set (which groups of alike devices it has, and of other devices than processors one or more) the model also ranks the first ones
// alone (alone.go), and those with a few more or fewer units than the two best: a rank of all sets shares its effort between them, and the space lists few numbers. Then the sets contend (contend.go). The search on a set has levels:
//   - level 0 plans for its choice in the rank;
//   - level 1 improves that plan by local search, and lets all policies plan with the tiles of all devices, if these are few tasks, as the search of a machine with no other devices
//     begins. Before it the value by the model counts, since steps overlap there, or the part of it that local search has found on other sets of the sort. Behind it the value of the
//     plan counts. A set of which the best plan leaves a device without tasks comes behind the set without it;
//   - each further level has twice the effort of the one before. The first of them tries the first strategies by name on the set. It plans for more proposals: what the model ranks first on this set alone, the tiles of the best plan of all
//     sets, and choices far apart in the space. It goes on from the best choices to similar ones (downhill.go), drawn at random. The most
//     promising of them by the model are planned for. It improves plans by local search: the best one, and others, which may begin with the plan of a part of the set. On the best ones all
//     policies plan where the effort suffices. Where a set has processors and other devices, the policy apart leaves loads to the processors, and nothing else.
//
// In a round the best set comes to some level, the next two below it to the level below, the next four to the level below that, and so on. In the next round each is one level higher,
// and as many sets as had begun begin. Local search sees the best of each sort of set first, since what it gains depends on the sort. A round also
//   - plans for strategies by name, on all devices as --policy gives them: pipelines, replicas, parts of weights and of images. Those over all devices
//     that are no processors come first, in the order of a model. Over cores alone they come last. What a bound excludes is not planned for. [Result.Untried] names the
//     strategies that the nodes did not suffice for. Then come strategies with other numbers. All of them contend as one set does.
//     Stages have places, so that all policies and local search change their order alone;
//   - plans for choices that keep fewer bytes (smaller.go), where a memory is too small for the choice on all devices, or for the best one without a strategy: it has
//     no plan, or reloads what was evicted. These join the loss with the last layer, recompute layers, or have more micro-batches;
//   - ranks sets near the two with the best plans likewise. The most promising contend next;
//   - looks at all plans of a step that runs alone and has few tasks, by branch and bound.
//
// A step of a round is charged with nodes that depend on the network alone, and is not begun where fewer are left. So neither the budget nor the number of sets changes what a
// level does: with more nodes the search goes on where it ended with fewer, and its plan is never worse, and a set has the same level in the search of a machine as in the search of a
// part of it, if it has the same rank in both. On a machine of few sets the search ends early. A plan that becomes the best was simulated for as many steps as results are told in, and
// leaves out devices without tasks.
//
// The first plan takes no nodes, and neither do the plans of all policies on all devices and the first strategies by name: there are fewer of them, or smaller ones, with fewer devices. The search goes on from the choice of the devices in use where policies leave others idle: idle
// devices make no further choices.
//
// Six tenths of the nodes, or of the time, are for the rounds. Then the linear relaxation of package relax proves bounds of the
// choices that may still have a better plan, of many together at first and of each in the end, and the certificate keeps the proofs.
//
// A time is for the whole command. The rank of a model takes a quarter of it at most. A part is kept for the report, which lasts as long as a few long
// simulations of the plan. The rounds have six tenths of what is left after the first plan, and bounds the rest. One that is not found by then is left out.
//
// With one policy a search consists of proposals and similar choices on all sets together, and proves nothing.
//
// A brief search proves nothing either. It takes the plans of policies as they are, but for the last one, which local search improves if it has few tasks, and compares them by few steps. For networks of many layers the
// model ranks with a part of the effort. In the end it plans for the best
// pipeline and the best other strategy by the model, where these may be better.
//
// # Units
//
// A steady step is the time by which one more step prolongs a long run: a hundred steps less fifty, over fifty. Its bound holds
// for the mean over ever more steps.
//
// # Limits
//
// Sleep after tasks is chosen for the plans that local search has improved, when all else is. The order of transfers between memories
// follows from the order of tasks ([improve]). No more than two versions of a buffer are tried. Bounds hold for any sleep, order and
// number of versions. The leaves of a certificate cover all choices of the space, of a network the choices with the tiles of the plan, and of a plan with a strategy its choice alone. It also
// has a bound for all lowerings of a network on all sets of devices ([dahl/plan/shares]), which is mostly less.
//
// The price gives each call on each device the variant with the shortest time by itself, at the device's first clock with all
// of its units. So weights depend neither on the number of units nor on clocks ([platform.Platform.Estimate]). What the
// policies, branch and bound and local search plan runs by these. Local search then tries others in the plans that it has
// improved, one for all tasks of a call on a device. The last bits of weights depend on the chosen variants. They may be better
//   - where models state joules of single calls, as the models of a machine with a meter and graph files do. A machine says
//     watts by device and clock, by which a slower variant takes more joules of each call too;
//   - at another clock or with fewer units, where another variant may be the fastest: one that waits for memory
//     loses less by a slower clock;
//   - inside steps, where a call may take longer than by itself.
//
// Bounds hold for all of them, but for those that were measured by themselves only where the one of the price was measured inside
// steps. Times without neighbours are no match for times with them, so that these are not tried either
// ([schedule.Priced.ByVariant]).
//
// Where memory is short, a variant with less workspace is not tried. Each unit keeps the workspace of its largest call in its
// memory. If contents no longer fit, they are evicted and reloaded. If the operands of one task do not fit, the choice
// has no plan and is left out.
//
// A brief search tries no other variants.
package best
