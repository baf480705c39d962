package data

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"dahl/dag"
	"dahl/nn/random"
)

// Tokens describes random sequences that a network can learn. Each token has a successor of its own, which follows it seven times of eight. Any
// token follows otherwise. The label of a position is the next token. A sequence depends on the split and its index only.
type Tokens struct {
	Positions, Samples, Vocabulary int
}

// ParseTokens reads the text after "tokens:", POSITIONS[:samples[:vocabulary]]. Missing parts are as in 64:1000:64.
func ParseTokens(spec string) (Tokens, error) {
	k := Tokens{64, 1000, 64}
	numbers := []*int{&k.Positions, &k.Samples, &k.Vocabulary}
	parts := strings.Split(spec, ":")
	for i, part := range parts {
		if spec == "" {
			break
		}
		n, err := strconv.ParseInt(part, 10, 32)
		if err != nil || n < 1 || i >= len(numbers) {
			return k, fmt.Errorf("%q are no sequences; write tokens:64:1000:256 for 1000 samples of 64 tokens from 0 to 255", spec)
		}
		*numbers[i] = int(n)
	}
	return k, nil
}

func (k Tokens) open(opt Options) (*Dataset, error) {
	lo, hi, err := opt.window(k.Samples)
	if err != nil {
		return nil, err
	}
	if hi-lo > MaxSamples/k.Positions {
		return nil, fmt.Errorf("%d samples of %d tokens; at most %d tokens are taken", hi-lo, k.Positions, MaxSamples)
	}
	d := &Dataset{
		Name: fmt.Sprintf("tokens %d of %d", k.Positions, k.Vocabulary), Type: dag.Int32, Divisor: 255,
		Shape: []int{k.Positions}, Positions: []int{k.Positions}, Classes: k.Vocabulary,
		Samples: make([]byte, 0, 4*(hi-lo)*k.Positions), Labels: make([]int32, 0, (hi-lo)*k.Positions),
		Source: fmt.Sprintf("tokens, seed 0, samples %d to %d of %d", lo, hi-1, k.Samples),
	}
	vocabulary, drawn, follows := uint64(k.Vocabulary), random.NewStream(0, "tokens."+opt.Split), random.NewStream(0, "tokens.successors")
	for i := lo; i < hi; i++ {
		at := uint64(i) * uint64(2*k.Positions+2)
		token := drawn.Below(at, vocabulary)
		for t := range uint64(k.Positions) {
			next := follows.Below(token, vocabulary)
			if drawn.Below(at+2*t+2, 8) == 0 {
				next = drawn.Below(at+2*t+3, vocabulary)
			}
			d.Samples = binary.LittleEndian.AppendUint32(d.Samples, uint32(token))
			d.Labels = append(d.Labels, int32(next))
			token = next
		}
	}
	return d, nil
}
