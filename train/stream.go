package train

import (
	"context"
	"fmt"

	"dahl/nn"
	"dahl/nn/data"
	"dahl/platform/quantity"
)

// As many batches are read ahead as fill mostAheadBytes, but at least two.
const (
	mostAheadBytes = 64 << 20
	leastAhead     = 2
	mostAhead      = 32
)

// ahead is the number of batches of some bytes that are read ahead.
func ahead(batchBytes int) int {
	return min(mostAhead, max(leastAhead, mostAheadBytes/max(1, batchBytes)))
}

// aheadBytes is the memory of batches that are read ahead.
func aheadBytes(batchBytes int) int64 { return int64(ahead(batchBytes)) * int64(batchBytes) }

// StreamedText says how samples reach the steps of a batch where they are streamed.
func (d *Data) StreamedText(batch int) string {
	bytes, why := fedBytes(d.Train, batch), "do not fit the memory and "
	if d.Train.OnlyRead() {
		why = ""
	}
	text := fmt.Sprintf("the samples "+why+"are read while the run goes on; %d batches, %s, are read ahead", ahead(bytes), quantity.ShortBytes(aheadBytes(bytes)))
	unzipped := d.Train.UnzippedBytes()
	if d.Test != nil {
		unzipped += d.Test.UnzippedBytes()
	}
	if unzipped > 0 {
		text += fmt.Sprintf("; compressed ones lie in a temporary file of %s beside them", quantity.ShortBytes(unzipped))
	}
	return text
}

// fedBytes are the samples and labels of a batch.
func fedBytes(d *data.Dataset, batch int) int {
	return batch * (d.SampleBytes() + 4*nn.Elems(d.Positions))
}

// stream reads a part of the batches of an order, ahead of the steps that read them.
type stream struct {
	data  *data.Dataset
	order []int32
	batch int
	part  part
	first int // batch that is a segment's first
	next  int // batch that copyNext gives

	free, ready chan *batchPart
	quit        chan struct{}
}

// batchPart is samples of a batch, or their labels.
type batchPart struct {
	samples []byte
	labels  []int32
	err     error // nothing follows it
}

// newStream begins to read a part of the batches of an order from one on.
func newStream(d *data.Dataset, order []int32, batch int, p part, from int) *stream {
	n := ahead(fedBytes(d, batch))
	s := &stream{data: d, order: order, batch: batch, part: p, next: from,
		free: make(chan *batchPart, n), ready: make(chan *batchPart, n), quit: make(chan struct{})}
	for range n {
		b := &batchPart{}
		if p.labels {
			b.labels = make([]int32, p.rows.Len()*nn.Elems(d.Positions))
		} else {
			b.samples = make([]byte, p.rows.Len()*d.SampleBytes())
		}
		s.free <- b
	}
	go s.read(from)
	return s
}

// read reads until all whole batches are read, one cannot be, or the stream is closed.
func (s *stream) read(k int) {
	for ; (k+1)*s.batch <= len(s.order); k++ {
		var b *batchPart
		select {
		case b = <-s.free:
		case <-s.quit:
			return
		}
		next := data.Batch(s.order, s.batch, k)[s.part.rows.Lo:s.part.rows.Hi]
		if s.part.labels {
			b.err = s.data.ReadLabels(b.labels, next)
		} else {
			b.err = s.data.Read(b.samples, next)
		}
		s.ready <- b // never blocks: there is room for all
		if b.err != nil {
			return
		}
	}
}

// copyNext copies the part of the next batch, once it has been read or ctx has ended.
func (s *stream) copyNext(ctx context.Context, samples []byte, labels []int32) error {
	select {
	case b := <-s.ready:
		if b.err != nil {
			s.ready <- b // for whoever asks again
			return b.err
		}
		copy(samples, b.samples)
		copy(labels, b.labels)
		s.free <- b
		s.next++
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// continues reports whether the stream gives the batches of an order next.
func (s *stream) continues(d *data.Dataset, order []int32, batch int) bool {
	return s.data == d && s.batch == batch && isRest(order, s.order[min(len(s.order), s.next*batch):])
}

// isRest reports whether two orders are the same memory.
func isRest(order, rest []int32) bool {
	return len(rest) > 0 && len(rest) == len(order) && &rest[0] == &order[0]
}

// close ends the reading after the batch that is being read.
func (s *stream) close() { close(s.quit) }
