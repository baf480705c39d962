package report

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
)

// column is the number of a column.
type column int

// columnHead says how a column is written and how many numbers it has.
type columnHead struct {
	Kind   string `json:"kind"`
	Length int    `json:"n"`
}

// encoder collects columns.
type encoder struct {
	heads []columnHead
	data  []byte
}

func (e *encoder) add(kind string, n int) column {
	e.heads = append(e.heads, columnHead{kind, n})
	return column(len(e.heads) - 1)
}

// ints adds a column of n integers.
func (e *encoder) ints(n int, at func(i int) int64) column {
	for i := range n {
		e.data = binary.AppendVarint(e.data, at(i))
	}
	return e.add("i", n)
}

// deltas adds a column of n integers that are near those before them.
func (e *encoder) deltas(n int, at func(i int) int64) column {
	before := int64(0)
	for i := range n {
		v := at(i)
		e.data = binary.AppendVarint(e.data, v-before)
		before = v
	}
	return e.add("d", n)
}

// floats adds a column of numbers that are drawn and not read.
func (e *encoder) floats(list []float64) column {
	for shift := 0; shift < 32; shift += 8 {
		for _, v := range list {
			e.data = append(e.data, byte(math.Float32bits(float32(v))>>shift))
		}
	}
	return e.add("f", len(list))
}

// write writes an object and the columns that it names.
func (e *encoder) write(w io.Writer, object map[string]any) error {
	object["columns"] = e.heads
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	z, err := zlib.NewWriterLevel(&packed, zlib.BestCompression)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{binary.AppendUvarint(nil, uint64(len(text))), text, e.data} {
		if _, err := z.Write(part); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	b := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := b.Write(packed.Bytes()); err != nil {
		return err
	}
	return b.Close()
}

// patterns is names as patterns and numbers. In a pattern every number is a zero byte.
type patterns struct {
	List    []string `json:"list"`
	Of      column   `json:"of"`      // by name
	Numbers []column `json:"numbers"` // by place in the pattern; 0 where a pattern has fewer
}

// maxDigits bounds the numbers that are taken out of names, so that they stay exact.
const maxDigits = 9

// patterns splits names.
func (e *encoder) patterns(names []string) patterns {
	p := patterns{List: []string{}, Numbers: []column{}}
	known := map[string]int{}
	of := make([]int, len(names))
	var numbers [][]int64 // by place, by name
	for i, name := range names {
		text, found := splitName(name)
		k, ok := known[text]
		if !ok {
			k = len(p.List)
			known[text], p.List = k, append(p.List, text)
		}
		of[i] = k
		for place, v := range found {
			if place == len(numbers) {
				numbers = append(numbers, make([]int64, len(names)))
			}
			numbers[place][i] = v
		}
	}
	p.Of = e.ints(len(names), func(i int) int64 { return int64(of[i]) })
	for _, list := range numbers {
		p.Numbers = append(p.Numbers, e.deltas(len(list), func(i int) int64 { return list[i] }))
	}
	return p
}

// splitName takes the numbers out of a name: those without leading zeros and of few digits.
func splitName(name string) (pattern string, numbers []int64) {
	var text []byte
	for i := 0; i < len(name); {
		end, v := i, int64(0)
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			if end-i < maxDigits {
				v = 10*v + int64(name[end]-'0')
			}
			end++
		}
		switch digits := end - i; {
		case digits == 0:
			text = append(text, name[i])
			end = i + 1
		case digits > maxDigits || digits > 1 && name[i] == '0':
			text = append(text, name[i:end]...)
		default:
			text, numbers = append(text, 0), append(numbers, v)
		}
		i = end
	}
	return string(text), numbers
}

// texts is strings of which many are equal.
type texts struct {
	at   map[string]int
	list []string
}

func (t *texts) number(s string) int64 {
	i, ok := t.at[s]
	if !ok {
		i = len(t.list)
		t.at[s], t.list = i, append(t.list, s)
	}
	return int64(i)
}
