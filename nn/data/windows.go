package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"dahl/dag"
	"dahl/nn/random"
)

// tokens are numbers that follow each other, as the characters of a text do.
type tokens interface {
	openTokens() (tokenReader, error)
}

// A tokenReader reads tokens from any place at any time, for several goroutines at once.
type tokenReader interface {
	readTokens(dst []int32, from int64) error
	io.Closer
}

// windows are samples of tokens that follow each other. The label of a position is the token behind it, or what is hidden there: see hide.
//
// A round is every token once: round 0 has windows that touch, from the first token on. Each other round begins at another token
// of the first window, so that a training does not see the same windows in every epoch. Its last window is moved back to lie within
// the tokens. Sample n·r + i is window i of n in round r.
type windows struct {
	tokens tokens
	length int   // positions of a sample
	lo, hi int64 // the tokens that belong to the set; windows have all of these but the last
	n      int   // windows in a round

	mask    int           // stands for hidden tokens; 0 means that none is hidden
	classes int           // of the tokens
	draws   random.Stream // of what is hidden
}

// newWindows are the windows of the tokens of a split that options select.
func newWindows(of tokens, lo, hi int64, opt Options) (*windows, error) {
	if opt.Positions < 1 {
		return nil, errors.New("these are tokens one after the other, and the network has no label for each position; take a network of sequences, such as gpt-tiny")
	}
	length := int64(opt.Positions)
	all := (hi - lo - 1) / length
	if all < 1 {
		err := fmt.Errorf("the %s split has %d tokens; a sample of %d positions and the token behind it are %d", opt.Split, hi-lo, length, length+1)
		if opt.Split == Test {
			err = fmt.Errorf("%w: %w", ErrNoSplit, err)
		}
		return nil, err
	}
	first, last, err := opt.window(int(min(all, math.MaxInt32)))
	if err != nil {
		return nil, err
	}
	if last-first > MaxSamples {
		return nil, fmt.Errorf("%d samples; at most %d are taken: use a limit", last-first, MaxSamples)
	}
	w := &windows{
		tokens: of, length: opt.Positions, lo: lo + int64(first)*length, hi: hi, n: last - first,
		mask: opt.MaskToken, draws: random.NewStream(0, "hidden."+opt.Split),
	}
	if last < int(all) {
		w.hi = lo + int64(last)*length + 1
	}
	return w, nil
}

// start is the first token of a sample.
func (w *windows) start(sample int32) int64 {
	round, at := int(sample)/w.n, w.lo+int64(int(sample)%w.n)*int64(w.length)
	if round > 0 {
		at += int64(random.NewStream(0, "windows").Below(uint64(round), uint64(w.length)))
	}
	return min(at, w.hi-1-int64(w.length))
}

// open makes windows a source of samples.
func (w *windows) open() (reader, error) {
	r, err := w.tokens.openTokens()
	return &windowReader{r, w}, err
}

type windowReader struct {
	tokenReader
	of *windows
}

func (r *windowReader) readFrom(first int, dst []byte) error {
	length := r.of.length
	for len(dst) > 0 {
		at, n := r.of.start(int32(first)), 1
		for n < len(dst)/(4*length) && r.of.start(int32(first+n)) == at+int64(n*length) { // which touches the one before
			n++
		}
		touching := make([]int32, n*length)
		if err := r.readTokens(touching, at); err != nil {
			return err
		}
		for i := range n {
			r.of.hide(int32(first+i), touching[i*length:][:length], nil)
		}
		first += n
		for _, token := range touching {
			binary.LittleEndian.PutUint32(dst, uint32(token))
			dst = dst[4:]
		}
	}
	return nil
}

// readLabels reads the labels of samples one after the other.
func (w *windows) readLabels(dst []int32, samples []int32) error {
	r, err := w.tokens.openTokens()
	if err != nil {
		return err
	}
	defer r.Close() // nothing was written
	for _, sample := range samples {
		labels, from := dst[:w.length], w.start(sample)
		if w.mask == 0 {
			from++
		}
		if err := r.readTokens(labels, from); err != nil {
			return err
		}
		w.hide(sample, slices.Clone(labels), labels)
		dst = dst[w.length:]
	}
	return nil
}

// hide hides tokens of a sample, if there is a mask, as Devlin et al. do ("BERT", 2018, arXiv:1810.04805, section 3.1): 15 % are to be found, of
// which 80 % are masked, 10 % become any token, and 10 % stay. Labels, if there are some, become -1 where nothing is to be found. What is drawn
// depends on the number of the sample and the place alone, so that each round hides others.
func (w *windows) hide(sample int32, tokens, labels []int32) {
	if w.mask == 0 {
		return
	}
	for t := range tokens {
		at := w.drawOf(sample, t)
		switch drawn := w.draws.Below(at, 1000); {
		case drawn >= found:
			if labels != nil {
				labels[t] = -1
			}
		case drawn < 120:
			tokens[t] = int32(w.mask)
		case drawn < 135:
			tokens[t] = int32(w.draws.Below(at+1, uint64(w.classes)))
		}
	}
}

// dataset is the data set of the windows, without a name and a source.
func (w *windows) dataset(classes int) *Dataset {
	w.classes = classes
	if w.mask > 0 {
		classes = max(classes, w.mask+1)
	}
	return &Dataset{Type: dag.Int32, Shape: []int{w.length}, Positions: []int{w.length}, Classes: classes, source: w}
}

// found is how many of 1000 tokens are to be found.
const found = 150

// drawOf is the number of the first of two draws for a place of a sample.
func (w *windows) drawOf(sample int32, t int) uint64 {
	return 2 * (uint64(sample)*uint64(w.length) + uint64(t))
}

// ignored is the number of places of samples where nothing is to be found.
func (w *windows) ignored(samples []int32) (n int) {
	if w.mask == 0 {
		return 0
	}
	for _, sample := range samples {
		for t := range w.length {
			if w.draws.Below(w.drawOf(sample, t), 1000) >= found {
				n++
			}
		}
	}
	return n
}

// inMemory is tokens that are held.
type inMemory []int32

func (m inMemory) openTokens() (tokenReader, error) { return m, nil }
func (m inMemory) Close() error                     { return nil }

func (m inMemory) readTokens(dst []int32, from int64) error {
	copy(dst, m[from:])
	return nil
}
