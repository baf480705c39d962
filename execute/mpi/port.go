package mpi

// Port is one process's end of the messages of a run. The processes are ranks from 0. All calls come from one goroutine.
type Port interface {
	Rank() int
	Size() int // number of ranks

	// Alloc returns zeroed memory for messages.
	Alloc(bytes int64) []byte
	// Send and Receive start a message of at most [MaxMessageBytes]. The bytes stay where they are, and nobody
	// touches them, until Done reports the request. Messages of one rank to another with one tag come in order. A
	// receiver may have room for more than is sent.
	Send(to, tag int, b []byte) (Request, error)
	Receive(from, tag int, b []byte) (Request, error)
	// Done reports whether a request is done, and then forgets it. It does not block.
	Done(r Request) (bool, error)

	// Outlives reports whether Shrink can leave lost ranks behind.
	Outlives() bool
	// Shrink makes the ranks that are left all there are, in their order. All of them call it. What was under way is
	// forgotten, and the memory of its messages is used no more.
	Shrink() error

	// Abort ends all ranks. It is for a rank whose peers may be gone.
	Abort()
	// Close waits for all ranks to close.
	Close() error
}

// Request is a message under way.
type Request int32

// MaxMessageBytes is the size of the largest message: MPI counts its elements in 31 bits.
const MaxMessageBytes = 1 << 30
