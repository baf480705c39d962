package execute

import (
	"bytes"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"dahl/execute/mpi"
)

// Two kinds of messages go between ranks. Control messages are lists of entries. Others are bytes: of a transfer, on the tag of
// its lane, or a text that an entry has announced.

const (
	controlTag = 0
	textTag    = 1
	moveTag    = 2 // of moves before the first and after the last step
	laneTag    = 3 // of lane 0
)

// entryKind is the kind of an entry of a control message.
type entryKind int32

const (
	entryBeat        entryKind = iota // the rank is alive
	entryLeave                        // it will send nothing more
	entryPing                         // it asks for At by the clock of the receiver
	entryPong                         // the answer
	entryClock                        // the receiver's clock is Value behind rank 0's, to At
	entryText                         // a text of Value bytes follows
	entryStop                         // likewise, the reason why the run is over
	entryLost                         // likewise, where a rank was lost
	entryReport                       // it wants a report of the receiver
	entryRun                          // run Value steps of graph Lane, from At on
	entryRecordedRun                  // likewise with a record
	entryCount                        // Lane has ended Value tasks
	entryData                         // the bytes of the transfer with this count follow, issued at At
	entryLast                         // Value is the last step
)

// entry is one part of a control message. Times are by the clock of rank 0.
type entry struct {
	Kind      entryKind
	Lane      int32
	Value, At int64
}

// messageHeader begins a control message. Counts and data belong to the run of its sequence.
type messageHeader struct{ Sequence, Entries int32 }

const (
	headerBytes    = int(unsafe.Sizeof(messageHeader{}))
	entryBytes     = int(unsafe.Sizeof(entry{}))
	messageEntries = 64
	messageBytes   = int64(headerBytes + messageEntries*entryBytes)
	outSlots       = 16
)

// received is an entry and where it came from.
type received struct {
	entry
	from     *peer
	sequence int32
}

// peer is another rank as this one sees it.
type peer struct {
	rank      int
	in        []byte // of the next control message
	receiving mpi.Request
	out       [outSlots]outMessage
	queue     []entry // to be sent

	heard, said time.Time
	left        bool // it sends nothing more

	toSend  []string // texts in the queue
	sent    text     // the one under way
	coming  []entry  // texts that were announced
	got     text     // the first of them, under way
	arrived [][]byte // texts that nobody has taken
}

// outMessage is a control message under way.
type outMessage struct {
	b       []byte
	request mpi.Request
	busy    bool
}

// text is memory for a text, and the messages under way with it.
type text struct {
	b     []byte
	under []mpi.Request
}

// room makes the memory as large as a text.
func (t *text) room(port mpi.Port, bytes int64) []byte {
	if int64(len(t.b)) < bytes {
		t.b = port.Alloc(max(bytes, 2*int64(len(t.b)), messageBytes))
	}
	return t.b[:bytes]
}

// send queues an entry.
func (p *peer) send(e entry) { p.queue = append(p.queue, e) }

// sendText queues a text.
func (p *peer) sendText(kind entryKind, text string) {
	p.send(entry{Kind: kind, Value: int64(len(text))})
	p.toSend = append(p.toSend, text)
}

// exchange receives and sends what can be.
func (n *Ranks) exchange(p *peer, now time.Time) (busy bool, err error) {
	for !p.left {
		done, err := n.port.Done(p.receiving)
		if err != nil {
			return busy, err
		}
		if !done {
			break
		}
		busy, p.heard = true, now
		header := (*messageHeader)(unsafe.Pointer(&p.in[0]))
		for _, e := range unsafe.Slice((*entry)(unsafe.Pointer(&p.in[headerBytes])), messageEntries)[:header.Entries] {
			n.handle(received{e, p, header.Sequence})
		}
		if p.left {
			break
		}
		if p.receiving, err = n.port.Receive(p.rank, controlTag, p.in); err != nil {
			return busy, err
		}
	}
	if err := n.receiveTexts(p); err != nil {
		return busy, err
	}
	if len(p.queue) == 0 && now.Sub(p.said) > beatPeriod {
		p.send(entry{Kind: entryBeat})
	}
	return busy, n.flush(p, now)
}

// flush sends the queue as far as there is room.
func (n *Ranks) flush(p *peer, now time.Time) error {
	for i := 0; i < len(p.out) && len(p.queue) > 0; i++ {
		o := &p.out[i]
		if o.busy {
			done, err := n.port.Done(o.request)
			if err != nil {
				return err
			}
			if !done {
				continue
			}
			o.busy = false
		}
		k := min(len(p.queue), messageEntries)
		if first := slices.IndexFunc(p.queue[:k], announces); first == 0 {
			k = 1
			if err := n.forgetDone(&p.sent.under); err != nil || len(p.sent.under) > 0 {
				return err
			}
			b := p.sent.room(n.port, p.queue[0].Value)
			copy(b, p.toSend[0])
			p.toSend = p.toSend[1:]
			if err := n.sendAll(p.rank, textTag, b, &p.sent.under); err != nil {
				return err
			}
		} else if first > 0 {
			k = first
		}
		*(*messageHeader)(unsafe.Pointer(&o.b[0])) = messageHeader{n.stamp, int32(k)}
		copy(unsafe.Slice((*entry)(unsafe.Pointer(&o.b[headerBytes])), messageEntries), p.queue[:k])
		var err error
		if o.request, err = n.port.Send(p.rank, controlTag, o.b[:headerBytes+k*entryBytes]); err != nil {
			return err
		}
		o.busy, p.said = true, now
		p.queue = append(p.queue[:0], p.queue[k:]...)
	}
	return nil
}

// forgetDone takes requests that are done from the start of a list.
func (n *Ranks) forgetDone(list *[]mpi.Request) error {
	for len(*list) > 0 {
		done, err := n.port.Done((*list)[0])
		if err != nil || !done {
			return err
		}
		*list = (*list)[1:]
	}
	return nil
}

// sendAll starts to send bytes, in messages as large as they may be.
func (n *Ranks) sendAll(to, tag int, b []byte, under *[]mpi.Request) error {
	return inMessages(b, under, func(part []byte) (mpi.Request, error) { return n.port.Send(to, tag, part) })
}

// receiveAll is the other end of sendAll.
func (n *Ranks) receiveAll(from, tag int, b []byte, under *[]mpi.Request) error {
	return inMessages(b, under, func(part []byte) (mpi.Request, error) { return n.port.Receive(from, tag, part) })
}

func inMessages(b []byte, under *[]mpi.Request, start func([]byte) (mpi.Request, error)) error {
	for {
		part := b[:min(len(b), mpi.MaxMessageBytes)]
		r, err := start(part)
		if err != nil {
			return err
		}
		*under = append(*under, r)
		if b = b[len(part):]; len(b) == 0 {
			return nil
		}
	}
}

// receiveTexts takes the texts that have come.
func (n *Ranks) receiveTexts(p *peer) error {
	for len(p.coming) > 0 {
		e := p.coming[0]
		b := p.got.room(n.port, e.Value)
		if len(p.got.under) == 0 {
			if err := n.receiveAll(p.rank, textTag, b, &p.got.under); err != nil {
				return err
			}
		}
		if err := n.forgetDone(&p.got.under); err != nil || len(p.got.under) > 0 {
			return err
		}
		p.coming = p.coming[1:]
		if e.Kind != entryText {
			n.fail(&rankError{p.rank, string(b), e.Kind == entryLost})
		} else {
			p.arrived = append(p.arrived, bytes.Clone(b))
		}
	}
	return nil
}

// announces reports whether a text follows an entry.
func announces(e entry) bool {
	return e.Kind == entryText || e.Kind == entryStop || e.Kind == entryLost
}

// handle does what an entry says.
func (n *Ranks) handle(e received) {
	switch e.Kind {
	case entryLeave:
		e.from.left = true
	case entryPing:
		e.from.send(entry{Kind: entryPong, Value: e.At, At: int64(time.Since(n.origin))})
	case entryClock:
		n.ahead, n.ClockError = time.Duration(e.Value), time.Duration(e.At)
	case entryPong:
		n.pong = e.entry
	case entryText, entryStop, entryLost:
		e.from.coming = append(e.from.coming, e.entry)
	case entryRun, entryRecordedRun, entryReport:
		n.commands = append(n.commands, e)
	case entryCount, entryData, entryLast:
		switch {
		case e.sequence > n.sequence:
			n.early = append(n.early, e)
		case e.sequence == n.sequence && n.run != nil:
			n.run.handle(e)
		}
	}
}

// take waits for a text of a rank. It is called on the goroutine.
func (n *Ranks) take(p *peer) (text []byte, err error) {
	err = n.until(func() (bool, error) {
		if len(p.arrived) == 0 && len(p.coming) == 0 && p.left {
			return false, fmt.Errorf("rank %d has left", p.rank)
		}
		return len(p.arrived) > 0, nil
	})
	if err == nil {
		text, p.arrived = p.arrived[0], p.arrived[1:]
	}
	return text, err
}
