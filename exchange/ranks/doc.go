// Package ranks joins the tasks of the ranks of one training into one graph, by the exchanges between them.
//
// Each rank has tasks in an order. An exchange takes place when all ranks of its group have come to it, and the n-th one of a rank in a group is the n-th of
// the others there. Tasks that follow no exchange wait for none. A send and the receive that belongs to it are an exchange of two ranks.
//
// An exchange becomes copies between the memories of devices. For a sum of n ranks, each takes its n-th of all inputs and adds them, and then all take the
// sums of the others: so each rank sends and receives 2(n-1)/n of the bytes. Where these are too few for slices, each rank takes all inputs whole.
package ranks
