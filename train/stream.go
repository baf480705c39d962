package train

import (
	"cmp"
	"context"
	"fmt"

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
	return batch * (d.SampleBytes() + 4*elements(d.Positions))
}

// stream reads the samples and labels of batches in their order, ahead of the steps that read them.
type stream struct {
	data  *data.Dataset
	order []int32
	batch int
	next  int // batch that copyNext gives

	free, ready chan *batchSamples
	quit        chan struct{}
}

type batchSamples struct {
	samples []byte
	labels  []int32
	err     error // nothing follows it
}

// newStream begins to read the batches of an order from one on.
func newStream(d *data.Dataset, order []int32, batch, from int) *stream {
	n := ahead(fedBytes(d, batch))
	s := &stream{data: d, order: order, batch: batch, next: from,
		free: make(chan *batchSamples, n), ready: make(chan *batchSamples, n), quit: make(chan struct{})}
	for range n {
		s.free <- &batchSamples{samples: make([]byte, batch*d.SampleBytes()), labels: make([]int32, batch*elements(d.Positions))}
	}
	go s.read(from)
	return s
}

// read reads until all whole batches are read, one cannot be, or the stream is closed.
func (s *stream) read(k int) {
	for ; (k+1)*s.batch <= len(s.order); k++ {
		var b *batchSamples
		select {
		case b = <-s.free:
		case <-s.quit:
			return
		}
		next := data.Batch(s.order, s.batch, k)
		b.err = cmp.Or(s.data.Read(b.samples, next), s.data.ReadLabels(b.labels, next))
		s.ready <- b // never blocks: there is room for all
		if b.err != nil {
			return
		}
	}
}

// copyNext copies the samples and labels of the next batch, once they have been read or ctx has ended.
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
	rest := s.order[min(len(s.order), s.next*s.batch):]
	return s.data == d && s.batch == batch && len(rest) > 0 && len(rest) == len(order) && &rest[0] == &order[0]
}

// close ends the reading after the batch that is being read.
func (s *stream) close() { close(s.quit) }
