package data

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dahl/must"
)

const mergesDir = "testdata/merges"

// TestMerges: texts have the tokens that Hugging Face's tokenizers and OpenAI's tiktoken give them (testdata/merges/make.py).
func TestMerges(t *testing.T) {
	v := must.Get(ReadMerges(mergesDir))(t)
	var expected []struct {
		Text   string
		Tokens []int32
	}
	must.Do(t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(mergesDir, "expected.json")))(t), &expected))
	for _, e := range expected {
		got, err := v.Encode(e.Text)
		if err != nil || !slices.Equal(got, e.Tokens) {
			t.Errorf("%q: tokens %v (%v), want %v", e.Text, got, err, e.Tokens)
		}
		if text := v.Decode(e.Tokens); text != e.Text {
			t.Errorf("%q is decoded as %q", e.Text, text)
		}
	}
	if v.Size() != 256+61 {
		t.Errorf("%d pieces, want 317", v.Size())
	}
}

// TestTextByMerges: a text is trained on by its pieces, of which the first nine tenths are for the training.
func TestTextByMerges(t *testing.T) {
	text := strings.Repeat("they're reading there 123 ", 20)
	v := must.Get(VocabularyOf(mergesDir))(t)
	all := must.Get(v.Encode(text))(t)
	path := fileIn(t, "a.txt", []byte(text))
	d := must.Get(Open(path, Options{Positions: 7, Vocabulary: v}))(t)
	tokens, labels := sampleOf(t, d, 1)
	if n := len(all) * 9 / 10; d.Classes != 317 || d.Len() != (n-1)/7 || !slices.Equal(tokens, all[7:14]) || !slices.Equal(labels, all[8:15]) {
		t.Errorf("%d classes, %d samples, tokens %v, labels %v", d.Classes, d.Len(), tokens, labels)
	}
	bad := fileIn(t, "b.txt", []byte("ab\xff"))
	if _, err := Open(bad, Options{Positions: 1, Vocabulary: v}); err == nil || !strings.Contains(err.Error(), "byte 2 is no character in UTF-8") {
		t.Errorf("a text that is no UTF-8: %v", err)
	}
}

// TestBadMerges: files that are no vocabulary are refused in one line, which names what is wrong.
func TestBadMerges(t *testing.T) {
	for _, c := range []struct{ pieces, merges, want string }{
		{`{"a":0,"b":1,"ab":2}`, "a b", ""},
		{`{"a":0,"b":2}`, "", `has number 2; want the numbers 0 to 1, each once`},
		{`{"a":0,"b":0}`, "", `has number 0; want the numbers 0 to 1, each once`},
		{`["a"]`, "", `want an object with the number of each piece`},
		{`{}`, "", `vocabulary of 0 pieces`},
		{`{"a":0,"b":1,"ab":2}`, "#version: 0.2\na b\nb a\n", `merge 2, "b a": want two pieces`},
		{`{"a":0,"b":1,"ab":2}`, "a b\na b", `merge 2, "a b": want two pieces`},
		{`{"a":0,"b":1,"ab":2}`, "ab", `merge 1, "ab": want two pieces`},
	} {
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, piecesFile), []byte(c.pieces), 0o600))
		must.Do(t, os.WriteFile(filepath.Join(dir, mergesFile), []byte(c.merges), 0o600))
		if _, err := VocabularyOf(dir); (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s, %q: %v, want %s", c.pieces, c.merges, err, c.want)
		}
	}
	v := Vocabulary{Kind: ByMerges, Pieces: []string{"a", "b", "ab"}, Merges: []string{"a b"}}
	if _, err := v.Encode("abc"); err == nil || !strings.Contains(err.Error(), `byte 0x63 of "abc" is no piece`) {
		t.Errorf("a byte that is no piece: %v", err)
	}
	if _, err := VocabularyOf("byte"); err == nil || !strings.Contains(err.Error(), `vocabulary "byte": want characters or bytes, or a directory with vocab.json and merges.txt; did you mean bytes`) {
		t.Errorf("a word that is none: %v", err)
	}
}

// lookahead is GPT-2's regular expression without the part that Go's package lacks: the last of several spaces belongs to what follows.
var lookahead = regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\pZ\s\x{0B}\x{85}\p{L}\p{N}]+)`)

// FuzzMerges: a text that is encoded and decoded is the same text, and its parts are as the regular expression says.
func FuzzMerges(f *testing.F) {
	f.Add("they're  here\n\n 12 '")
	v := must.Get(ReadMerges(mergesDir))(f)
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		tokens, err := v.Encode(text)
		if got := v.Decode(tokens); err != nil || got != text {
			t.Errorf("%q is decoded as %q, %v", text, got, err)
		}
		for text != "" {
			n := partOfText(text)
			if want := lookahead.FindStringIndex(text); want != nil && want[1] != n {
				t.Errorf("the first part of %q has %d bytes, want %d", text, n, want[1])
			}
			text = text[n:]
		}
	})
}
