package data

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"dahl/rundir/durable"
)

// textSuffix is the end of the names of texts.
const textSuffix = ".txt"

// openText opens a text. Its first nine tenths are for the training, and the rest for the test, as in nanoGPT's prepare.py.
func openText(path string, opt Options) (*Dataset, error) {
	v := opt.Vocabulary
	of := tokens(nil)
	n := int64(0)
	switch kind := v.Kind; kind {
	case ByBytes:
		f, err := openTokenFile(path, 0, 1)
		if err != nil {
			return nil, err
		}
		of, n = f, f.n
	case ByCharacters, "":
		v.Kind = ByCharacters
		f, err := openCharacters(path, &v)
		if err != nil {
			return nil, err
		}
		of, n = f, f.n
	case ByMerges:
		all, err := encodeFile(path, &v)
		if err != nil {
			return nil, err
		}
		of, n = all, int64(len(all))
	default:
		return nil, v.Check()
	}
	lo, hi := partOf(n, opt.Split)
	w, err := newWindows(of, lo, hi, opt)
	if err != nil {
		return nil, err
	}
	d := w.dataset(v.Size())
	d.Name, d.Source, d.Vocabulary = filepath.Base(path), path, &v
	return d, nil
}

// noCharacter refuses a text that is not in UTF-8.
func noCharacter(at int64) error {
	return fmt.Errorf("byte %d is no character in UTF-8; write the text in UTF-8, or take --vocabulary %s", at, ByBytes)
}

// partOf is the tokens of a split of a file that has both.
func partOf(n int64, split string) (lo, hi int64) {
	first := n/10*9 + n%10*9/10
	if split == Test {
		return first, n
	}
	return 0, first
}

// charactersApart is the number of characters between two places that are kept of a text.
const charactersApart = 1024

// characterFile is a text of characters, of one to four bytes each.
type characterFile struct {
	path    string
	bytes   int64
	n       int64   // characters
	places  []int64 // in bytes of each of charactersApart
	numbers map[rune]int32
}

// openCharacters reads a text once, for its length and the places. A vocabulary without characters gets them from the text.
func openCharacters(path string, v *Vocabulary) (*characterFile, error) {
	f, err := durable.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &characterFile{path: path, numbers: v.numbers()}
	known, seen := v.Characters != "", map[rune]bool{}
	for in := bufio.NewReaderSize(f, 1<<20); ; c.n++ {
		char, size, err := in.ReadRune()
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil:
			return nil, err
		case char == utf8.RuneError && size == 1:
			return nil, noCharacter(c.bytes)
		}
		if c.n%charactersApart == 0 {
			c.places = append(c.places, c.bytes)
		}
		if !seen[char] {
			seen[char] = true
			if _, ok := c.numbers[char]; known && !ok {
				return nil, fmt.Errorf("character %q at byte %d is not in the vocabulary %q of the run", char, c.bytes, v.Characters)
			}
		}
		c.bytes += int64(size)
	}
	if known {
		return c, nil
	}
	var list []rune
	for char := range seen {
		list = append(list, char)
	}
	slices.Sort(list)
	v.Characters = string(list)
	c.numbers = v.numbers()
	return c, nil
}

func (c *characterFile) openTokens() (tokenReader, error) {
	f, err := openSized(c.path, c.bytes)
	return &characterReader{f, c}, err
}

type characterReader struct {
	*os.File
	of *characterFile
}

// readTokens reads from the last place before a character on.
func (r *characterReader) readTokens(dst []int32, from int64) error {
	in := bufio.NewReader(io.NewSectionReader(r.File, r.of.places[from/charactersApart], r.of.bytes))
	for i := -(from % charactersApart); i < int64(len(dst)); i++ {
		char, _, err := in.ReadRune()
		if err != nil {
			return fmt.Errorf("%s: %w; leave the data alone while they are trained on", r.of.path, err)
		}
		token, ok := r.of.numbers[char]
		if !ok {
			return fmt.Errorf("%s: character %q is new; leave the data alone while they are trained on", r.of.path, char)
		}
		if i >= 0 {
			dst[i] = token
		}
	}
	return nil
}
