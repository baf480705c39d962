package execute

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	"dahl/execute/host"
	"dahl/execute/mpi"
)

// Ranks are the processes that run a program together, one for each node of the platform: rank i is node i. Each has
// a runner of the same decision, which does the node's part. Rank 0 says what is run ([Runner.Run]), and the
// others follow ([Runner.Serve]).
//
// One goroutine makes all calls of MPI. It lives from [Join] to Close, listens all the time, and says every second that this
// process is alive.
type Ranks struct {
	Rank, Size int
	// ClockError is how far the clock of a rank may be off rank 0's. At rank 0 it is the largest one of all.
	ClockError time.Duration

	place  mpi.Launch
	port   mpi.Port
	peers  []*peer // by rank; nil for this one
	work   chan func()
	parker host.Parker
	ended  chan struct{} // closed when the goroutine has ended

	origin   time.Time     // times on this process's clock count from here
	ahead    time.Duration // of rank 0's clock before this one's
	turned   time.Time     // the last look at the messages
	active   time.Time     // the last message
	failed   error
	agreed   bool
	run      *rankedRun // under way; nil means none
	sequence int32      // of the last run that has begun
	stamp    int32      // of the run in what is sent
	early    []received // of the next run
	commands []received // to run something
	pong     entry      // the last answer of a clock
	moving   text       // rows of a move before or after a run
}

const (
	// rankTimeout is how long a rank is silent before the others give it up.
	rankTimeout = 10 * time.Second
	// startTimeout is how long a rank waits for all others to start.
	startTimeout = time.Minute
	// beatPeriod is how often a rank says at least that it is alive.
	beatPeriod = time.Second
	// restPeriod is how often a process looks for messages where none has come for a while.
	restPeriod = time.Millisecond
	// restAfter is how long none has come then.
	restAfter = 100 * time.Millisecond
)

// Join makes this process one of the ranks that a launcher has started. open opens its end of the messages.
func Join(place mpi.Launch, open func(mpi.Launch) (mpi.Port, error)) (*Ranks, error) {
	n := &Ranks{place: place, work: make(chan func()), ended: make(chan struct{}), origin: time.Now()}
	opened := make(chan error, 1)
	go n.main(open, opened)
	select {
	case err := <-opened:
		if err != nil {
			return nil, err
		}
	case <-time.After(startTimeout): // a library may wait for a lost rank without an end
		return nil, fmt.Errorf("not all ranks have started within %v", startTimeout)
	}
	if err := n.alignClocks(); err != nil {
		return nil, n.Close(err)
	}
	return n, nil
}

// main is the goroutine that makes all calls.
func (n *Ranks) main(open func(mpi.Launch) (mpi.Port, error), opened chan<- error) {
	runtime.LockOSThread()
	host.WakeInTime()
	defer close(n.ended)
	var err error
	var port mpi.Port
	if port, err = open(n.place); err == nil {
		n.port = losing{port}
		n.Rank, n.Size = n.port.Rank(), n.port.Size()
		err = n.listen()
	}
	opened <- err
	if err != nil {
		return
	}
	for {
		select {
		case f, open := <-n.work:
			if !open {
				return
			}
			f()
			n.active = time.Now()
		default:
			n.rest(n.turn())
		}
	}
}

// listen starts to receive from all other ranks.
func (n *Ranks) listen() error {
	now := time.Now()
	n.turned, n.active = now, now
	for rank := range n.Size {
		if rank == n.Rank {
			n.peers = append(n.peers, nil)
			continue
		}
		p := &peer{rank: rank, heard: now, in: n.port.Alloc(messageBytes)}
		for i := range p.out {
			p.out[i].b = n.port.Alloc(messageBytes)
		}
		var err error
		if p.receiving, err = n.port.Receive(rank, controlTag, p.in); err != nil {
			return err
		}
		n.peers = append(n.peers, p)
	}
	return nil
}

// FirstOfMachine reports whether no other process of its machine has a lower rank.
func (n *Ranks) FirstOfMachine() bool { return n.place.LocalRank == 0 }

// do calls f on the goroutine.
func (n *Ranks) do(f func() error) (err error) {
	done := make(chan struct{})
	n.begin(func() {
		defer close(done)
		if err = n.failed; err == nil {
			err = f()
		}
	})
	<-done
	return err
}

// begin hands f to the goroutine.
func (n *Ranks) begin(f func()) {
	n.parker.Wake()
	n.work <- f
}

// until looks for messages until something is done. It is called on the goroutine.
func (n *Ranks) until(done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		busy := n.turn()
		if n.failed != nil {
			return n.failed
		}
		n.rest(busy)
	}
}

// rest lets other threads have the core where nothing has come.
func (n *Ranks) rest(busy bool) {
	switch idle := time.Since(n.active); {
	case busy || idle < spinLimit:
	case idle < restAfter:
		n.parker.ParkFor(pollPeriod)
	default:
		n.parker.ParkFor(restPeriod)
	}
}

// turn looks for messages of all ranks once, sends what waits, and notices silent ranks.
func (n *Ranks) turn() (busy bool) {
	now := time.Now()
	paused := now.Sub(n.turned) > beatPeriod // this process stood still, and what others sent is not read yet
	n.turned = now
	for p := range n.others {
		some, err := n.exchange(p, now)
		busy = busy || some
		switch {
		case err != nil:
			n.fail(fmt.Errorf("messages with rank %d: %w", p.rank, err))
		case paused:
			p.heard = now
		case now.Sub(p.heard) > rankTimeout && !p.left:
			// Not lost: the library would wait for a rank that stands still.
			n.fail(fmt.Errorf("rank %d has not been heard of for %v: its process or its machine is gone", p.rank, rankTimeout))
		}
	}
	if busy {
		n.active = now
	}
	return busy
}

// others yields the other ranks in their order.
func (n *Ranks) others(yield func(*peer) bool) {
	for _, p := range n.peers {
		if p != nil && !yield(p) {
			return
		}
	}
}

// fail ends the run under way, and everything after it. The first failure is kept, and told to the others.
func (n *Ranks) fail(err error) {
	if n.failed != nil {
		return
	}
	n.failed = err
	if n.run != nil {
		n.run.job.fail(err)
	}
	if reported := (*rankError)(nil); errors.As(err, &reported) {
		return // they know
	}
	kind := entryStop
	if Lost(err) {
		kind = entryLost
	}
	for p := range n.others {
		p.sendText(kind, err.Error())
		n.flush(p, n.turned)
	}
}

// rankError is a failure of another rank.
type rankError struct {
	rank int
	text string
	lost bool
}

func (e *rankError) Error() string { return fmt.Sprintf("rank %d: %s", e.rank, e.text) }

// ErrReported is an error of which another rank tells the user.
var ErrReported error = &rankError{0, "it reports why", false}

// Reported says whether another rank has an error, and reports it.
func Reported(err error) bool { return errors.As(err, new(*rankError)) }

// Close leaves the ranks. err is the error that ended the work, and is returned. Without one Close waits until all leave.
func (n *Ranks) Close(err error) error {
	if !n.agreed {
		err = n.Agree(nil, err)
	}
	left := n.do(func() error {
		if err != nil {
			n.fail(err)
			return nil
		}
		for p := range n.others {
			p.send(entry{Kind: entryLeave})
		}
		err := n.until(func() (bool, error) {
			for p := range n.others {
				if !p.left || len(p.queue) > 0 {
					return false, nil
				}
			}
			return true, nil
		})
		if err == nil {
			err = n.port.Close()
		}
		return err
	})
	n.parker.Wake()
	close(n.work)
	<-n.ended
	return cmp.Or(err, left)
}
