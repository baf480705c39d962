package data

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// GPT-2 (Radford et al. 2019) cuts a text into words, numbers, signs and spaces, and each of these into its bytes. Then pairs of neighbours are
// joined, the pair that comes first in a list before the others, until none of the list is left. Files write a byte that is no visible character of
// Latin-1 as a character from U+0100 on, in the order of the bytes.

// The files of a directory with the merges of a vocabulary.
const (
	mergesFile = "merges.txt" // a pair in a line, with a space between; the first line may be a comment that begins with #version
	piecesFile = "vocab.json" // an object with the number of each piece
)

// maxVocabularyBytes bounds each of them. The files of GPT-2 have about 1 MB.
const maxVocabularyBytes = 64 << 20

// ReadMerges reads the vocabulary of a directory, as GPT-2 is published with and as Hugging Face's libraries write one.
func ReadMerges(dir string) (*Vocabulary, error) {
	path := filepath.Join(dir, piecesFile)
	src, err := readWhole(path, maxVocabularyBytes)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	if err := json.Unmarshal(src, &numbers); err != nil {
		return nil, fmt.Errorf("%s: %w; want an object with the number of each piece", path, err)
	}
	v := &Vocabulary{Kind: ByMerges, Pieces: make([]string, len(numbers))}
	for piece, number := range numbers {
		if number < 0 || number >= len(numbers) || v.Pieces[number] != "" || piece == "" {
			return nil, fmt.Errorf("%s: piece %q has number %d; want the numbers 0 to %d, each once", path, piece, number, len(numbers)-1)
		}
		v.Pieces[number] = piece
	}
	path = filepath.Join(dir, mergesFile)
	if src, err = readWhole(path, maxVocabularyBytes); err != nil {
		return nil, err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(src), "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 && strings.HasPrefix(line, "#version") || line == "" {
			continue
		}
		v.Merges = append(v.Merges, line)
	}
	if err := v.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return v, nil
}

// hasMerges reports whether a directory has the files of a vocabulary.
func hasMerges(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, mergesFile))
	return err == nil && info.Mode().IsRegular()
}

// byteCharacters are the characters that files write for bytes.
var byteCharacters = func() (all [256]rune) {
	next := rune(256)
	for b := range all {
		if c := rune(b); c >= '!' && c <= '~' || c >= '¡' && c <= '¬' || c >= '®' {
			all[b] = c
		} else {
			all[b] = next
			next++
		}
	}
	return all
}()

// characterBytes is the inverse of byteCharacters.
var characterBytes = func() map[rune]byte {
	all := map[rune]byte{}
	for b, c := range byteCharacters {
		all[c] = byte(b)
	}
	return all
}()

// bytesOfPiece are the bytes of the text of a piece. A piece that no merges make, as one for the end of a text, may have other characters.
func bytesOfPiece(piece string) (text []byte) {
	for _, c := range piece {
		if b, ok := characterBytes[c]; ok {
			text = append(text, b)
		} else {
			text = utf8.AppendRune(text, c)
		}
	}
	return text
}

// merging is a vocabulary of merges that has been prepared for encoding.
type merging struct {
	bytes [256]int32            // the token of each byte, or -1
	pairs map[[2]int32][2]int32 // of two tokens: the place in the list, and the token of both
	known map[string][]int32    // of parts that were encoded before
}

// merging finds the tokens of the merges.
func (v *Vocabulary) merging() (*merging, error) {
	numbers := make(map[string]int32, len(v.Pieces))
	for i, piece := range v.Pieces {
		numbers[piece] = int32(i)
	}
	m := &merging{pairs: make(map[[2]int32][2]int32, len(v.Merges)), known: map[string][]int32{}}
	for b, c := range byteCharacters {
		token, ok := numbers[string(c)]
		if m.bytes[b] = token; !ok {
			m.bytes[b] = -1
		}
	}
	for i, line := range v.Merges {
		first, second, _ := strings.Cut(line, " ")
		a, known := numbers[first]
		b, too := numbers[second]
		both, made := numbers[first+second]
		if _, twice := m.pairs[[2]int32{a, b}]; !known || !too || !made || twice {
			return nil, fmt.Errorf("merge %d, %.40q: want two pieces with a space between, each pair once, whose join is a piece, too", i+1, line)
		}
		m.pairs[[2]int32{a, b}] = [2]int32{int32(i), both}
	}
	return m, nil
}

// encode is the tokens of a text.
func (m *merging) encode(text string) (tokens []int32, err error) {
	for at := 0; at < len(text); {
		n := partOfText(text[at:])
		part := text[at : at+n]
		at += n
		known, ok := m.known[part]
		if !ok {
			if known, err = m.join(part); err != nil {
				return nil, err
			}
			m.known[strings.Clone(part)] = known
		}
		tokens = append(tokens, known...)
	}
	return tokens, nil
}

// join joins the bytes of a part.
func (m *merging) join(part string) (tokens []int32, err error) {
	for _, b := range []byte(part) {
		if m.bytes[b] < 0 {
			return nil, fmt.Errorf("byte %#x of %.40q is no piece of the vocabulary", b, part)
		}
		tokens = append(tokens, m.bytes[b])
	}
	for {
		least, pair := int32(math.MaxInt32), [2]int32{}
		for i := range len(tokens) - 1 {
			if to, ok := m.pairs[[2]int32{tokens[i], tokens[i+1]}]; ok && to[0] < least {
				least, pair = to[0], [2]int32{tokens[i], tokens[i+1]}
			}
		}
		if least == math.MaxInt32 {
			return tokens, nil
		}
		both, kept := m.pairs[pair][1], tokens[:0]
		for i := 0; i < len(tokens); i++ {
			if i+1 < len(tokens) && tokens[i] == pair[0] && tokens[i+1] == pair[1] {
				kept = append(kept, both)
				i++
			} else {
				kept = append(kept, tokens[i])
			}
		}
		tokens = kept
	}
}

// partOfText is the length in bytes of the first part of a text, as the regular expression of GPT-2 has it:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func partOfText(text string) int {
	for _, end := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	begin := 0
	if text[0] == ' ' && len(text) > 1 {
		begin = 1
	}
	if c, _ := utf8.DecodeRuneInString(text[begin:]); classOf(c) != space {
		return begin + runOf(text[begin:], classOf(c))
	}
	n := runOf(text, space)
	if _, last := utf8.DecodeLastRuneInString(text[:n]); n < len(text) && n > last {
		return n - last // the last space belongs to what follows
	}
	return n
}

// The classes of characters.
const (
	letter = iota
	digit
	space
	sign
)

func classOf(c rune) int {
	switch {
	case unicode.IsLetter(c):
		return letter
	case unicode.IsNumber(c):
		return digit
	case unicode.IsSpace(c):
		return space
	}
	return sign
}

// runOf is the length of the characters of a class at the start of a text.
func runOf(text string, class int) int {
	if n := strings.IndexFunc(text, func(c rune) bool { return classOf(c) != class }); n >= 0 {
		return n
	}
	return len(text)
}

// encodeFile is the tokens of a text, all of which are held.
func encodeFile(path string, v *Vocabulary) (inMemory, error) {
	text, err := readWhole(path, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		at := 0
		for c, size := utf8.DecodeRune(text); c != utf8.RuneError || size != 1; c, size = utf8.DecodeRune(text[at:]) {
			at += size
		}
		return nil, noCharacter(int64(at))
	}
	return v.Encode(string(text))
}

// checkMerges reports pieces without a number of their own, and merges of what is none.
func (v *Vocabulary) checkMerges() error {
	if slices.Contains(v.Pieces, "") || len(v.Pieces) == 0 {
		return fmt.Errorf("vocabulary of %d pieces; want each to have a character", len(v.Pieces))
	}
	_, err := v.merging()
	return err
}
