package data

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/npz"
)

// fileIn writes a file into a new directory and returns its path.
func fileIn(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, content, 0o600))
	return path
}

// sampleOf reads one sample and its labels.
func sampleOf(t testing.TB, d *Dataset, sample int32) (tokens, labels []int32) {
	t.Helper()
	raw := make([]byte, d.SampleBytes())
	must.Do(t, d.Read(raw, []int32{sample}))
	for ; len(raw) > 0; raw = raw[4:] {
		tokens = append(tokens, int32(binary.LittleEndian.Uint32(raw)))
	}
	labels = make([]int32, len(tokens))
	must.Do(t, d.ReadLabels(labels, []int32{sample}))
	return tokens, labels
}

// TestHiddenTokens: of a text whose tokens are 0 to 12 and follow each other in turn, 15 % of the positions have labels, which are what the text has there. Of these 80 %
// show the mask, and 1/10·12/13 another token. Of n positions a share p has a deviation of √(p(1-p)n), of which six are allowed. The next round hides others.
func TestHiddenTokens(t *testing.T) {
	const length, mask = 101, 17
	text := strings.Repeat("abcdefghijklm", 4000)
	d := must.Get(Open(fileIn(t, "a.txt", []byte(text)), Options{Positions: length, MaskToken: mask}))(t)
	if d.Classes != mask+1 || d.Tokens() != mask+1 {
		t.Fatalf("%d classes, %d tokens", d.Classes, d.Tokens())
	}
	n, labelled, masked, other := 0, 0, 0, 0
	for i := range d.Len() {
		tokens, labels := sampleOf(t, d, int32(i))
		for p, label := range labels {
			want := int32((i*length + p) % 13)
			n++
			switch {
			case label == -1 && tokens[p] == want:
				continue
			case label != want:
				t.Fatalf("sample %d has token %d and label %d at %d, and the text has %d", i, tokens[p], label, p, want)
			case tokens[p] == mask:
				masked++
			case tokens[p] != want:
				other++
			}
			labelled++
		}
	}
	for what, c := range map[string]struct {
		got, of int
		share   float64
	}{"with labels": {labelled, n, 0.15}, "masked": {masked, labelled, 0.8}, "replaced": {other, labelled, 0.1 * 12 / 13}} {
		if want := c.share * float64(c.of); math.Abs(float64(c.got)-want) > 6*math.Sqrt(want*(1-c.share)) {
			t.Errorf("%d of %d are %s, want about %.0f", c.got, c.of, what, want)
		}
	}
	places := func(sample int) (all []int) {
		_, labels := sampleOf(t, d, int32(sample))
		for p, label := range labels {
			if label >= 0 {
				all = append(all, p)
			}
		}
		return all
	}
	if slices.Equal(places(0), places(d.Len())) {
		t.Error("the second round hides the places of the first one")
	}
}

// TestTextByHand: 22 characters, of which 9/10 are 19 for the training. Samples of 5 and the character behind: (19-1)/5 = 3. The
// vocabulary of both splits is sorted.
func TestTextByHand(t *testing.T) {
	const text = "now is thé time. go on"
	path := fileIn(t, "a.txt", []byte(text))
	d := must.Get(Open(path, Options{Positions: 5}))(t)
	if want := " .eghimnostwé"; d.Vocabulary.Characters != want || d.Classes != 13 || d.Len() != 3 || d.Type != dag.Int32 || d.Tokens() != 13 {
		t.Fatalf("vocabulary %q, %d classes, %d samples", d.Vocabulary.Characters, d.Classes, d.Len())
	}
	for i, want := range []string{"now is", "s thé ", " time."} {
		tokens, labels := sampleOf(t, d, int32(i))
		whole := d.Vocabulary.Decode(append(tokens, labels[4]))
		if whole != want || !slices.Equal(labels[:4], tokens[1:]) {
			t.Errorf("sample %d is %q with labels %v", i, whole, labels)
		}
	}
	// Both splits together.
	if _, err := Open(path, Options{Positions: 5, Split: Test}); !errors.Is(err, ErrNoSplit) || !strings.Contains(err.Error(), "the test split has 3 tokens; a sample of 5 positions and the token behind it are 6") {
		t.Errorf("test split: %v", err)
	}
	test := must.Get(Open(path, Options{Positions: 2, Split: Test}))(t)
	if tokens, labels := sampleOf(t, test, 0); test.Len() != 1 || test.Vocabulary.Decode(append(tokens, labels[1])) != " on" {
		t.Errorf("test sample %v %v", tokens, labels)
	}
	part := must.Get(Open(path, Options{Positions: 2, Offset: 3, Limit: 2}))(t)
	if tokens, labels := sampleOf(t, part, 1); part.Len() != 2 || part.Vocabulary.Decode(append(tokens, labels[1])) != "hé " {
		t.Errorf("limited: %d samples, sample 1 is %v %v", part.Len(), tokens, labels)
	}
	// Bytes, of which é has two.
	bytes := must.Get(Open(path, Options{Positions: 10, Vocabulary: Vocabulary{Kind: ByBytes}}))(t)
	if tokens, _ := sampleOf(t, bytes, 0); bytes.Classes != 256 || bytes.Vocabulary.Decode(tokens) != text[:10] || tokens[9] != 0xC3 {
		t.Errorf("bytes are %v of %d", tokens, bytes.Classes)
	}
	// The vocabulary of a run.
	known := Vocabulary{Kind: ByCharacters, Characters: " .abcdefghijklmnopqrstuvwxyzé"}
	again := must.Get(Open(path, Options{Positions: 5, Vocabulary: known}))(t)
	if tokens, _ := sampleOf(t, again, 0); again.Classes != 29 || again.Vocabulary.Decode(tokens) != "now i" || tokens[0] != 15 {
		t.Errorf("with another vocabulary: %v of %d", tokens, again.Classes)
	}
}

// TestTextErrors: bad texts and options end in one line.
func TestTextErrors(t *testing.T) {
	for _, c := range []struct {
		name, content string
		opt           Options
		want          string
	}{
		{"a.txt", "abcdefghijklm", Options{}, "the network has no label for each position"},
		{"a.txt", "abc", Options{Positions: 5}, "the train split has 2 tokens; a sample of 5 positions and the token behind it are 6"},
		{"a.txt", "", Options{Positions: 5}, "the train split has 0 tokens"},
		{"a.txt", "ab\xffcd", Options{Positions: 1}, "byte 2 is no character in UTF-8; write the text in UTF-8, or take --vocabulary bytes"},
		{"a.txt", "abcd", Options{Positions: 1, Vocabulary: Vocabulary{Kind: "character"}}, `vocabulary "character": want characters or bytes, or a directory with vocab.json and merges.txt; did you mean characters`},
		{"a.txt", "abcd", Options{Positions: 1, Vocabulary: Vocabulary{Kind: ByCharacters, Characters: "abc"}}, `character 'd' at byte 3 is not in the vocabulary "abc"`},
		{"a.txt", "abcd", Options{Positions: 1, Offset: 2}, "offset 2 leaves none of the 2 train samples"},
		{"a.txt", "abcd", Options{Positions: 1, Resize: [2]int{8, 8}}, "cannot be resized"},
		{"a.bin", "abc", Options{Positions: 1}, "3 bytes are no whole number of tokens of 2"},
		{"a.bin", "abcd", Options{Positions: 1, Vocabulary: Vocabulary{Kind: ByBytes}}, "--vocabulary bytes is for a text"},
		{"a.npy", "abcd", Options{Positions: 1}, "truncated"},
		{"text:0", "", Options{Positions: 1}, `"0" is no length`},
	} {
		path := c.name
		if !strings.HasPrefix(path, "text") {
			path = fileIn(t, c.name, []byte(c.content))
		}
		if _, err := Open(path, c.opt); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s %q: error %v, want one line with %q", c.name, c.content, err, c.want)
		}
	}
}

// TestWindowsOfEpochs: in each epoch every sample is a part of the text of 1009 tokens that are all different, n = 1008/13 = 77 of
// them, so that one of another start lies behind another by a multiple of 13, but for the last, which is moved back. Epochs have
// other begins, and another seed another order of the same samples.
func TestWindowsOfEpochs(t *testing.T) {
	var raw []byte
	for i := range 1009 {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(i))
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "train.bin"), raw, 0o600))
	d := must.Get(Open(dir, Options{Positions: 13}))(t)
	if d.Len() != 77 || d.Classes != 1009 {
		t.Fatalf("%d samples, %d classes", d.Len(), d.Classes)
	}
	starts := func(seed uint64, epoch int) (all []int) {
		order := make([]int32, d.Len())
		d.Shuffle(order, seed, epoch)
		for _, sample := range order {
			tokens, labels := sampleOf(t, d, sample)
			for i, token := range tokens {
				if token != tokens[0]+int32(i) || labels[i] != token+1 {
					t.Fatalf("sample %d is %v with labels %v", sample, tokens, labels)
				}
			}
			all = append(all, int(tokens[0]))
		}
		return all
	}
	begins := map[int]bool{}
	for epoch := range 20 {
		all := starts(3, epoch)
		if other := starts(4, epoch); slices.Equal(all, other) {
			t.Errorf("epoch %d has the same order with another seed", epoch)
		}
		slices.Sort(all)
		begin := all[0]
		begins[begin] = true
		if begin < 0 || begin >= 13 || epoch == 0 && begin != 0 {
			t.Errorf("epoch %d begins at %d", epoch, begin)
		}
		for i, start := range all {
			if start != min(begin+13*i, 1009-1-13) {
				t.Errorf("epoch %d: sample %d begins at %d", epoch, i, start)
			}
		}
	}
	if len(begins) < 8 { // of 13; 19 draws come to fewer once in 10^4 seeds, and this one is fixed
		t.Errorf("only %d begins in 20 epochs", len(begins))
	}
	// All samples of round 0, and two that do not touch, at once.
	var all strings.Builder
	must.Get(d.WriteTo(&all))(t)
	var want []byte
	for i := range uint32(77 * 13) {
		want = binary.LittleEndian.AppendUint32(want, i)
	}
	if all.String() != string(want) {
		t.Error("all samples at once are not the tokens")
	}
	two := make([]byte, 2*4*13)
	must.Do(t, d.Read(two, []int32{76, 77})) // the last one, and the first one of round 1
	if a, b := binary.LittleEndian.Uint32(two), binary.LittleEndian.Uint32(two[4*13:]); a != 76*13 || b >= 13 {
		t.Errorf("samples 76 and 77 begin at %d and %d", a, b)
	}
	// The greatest int32 is not exceeded, however many epochs there are.
	order := make([]int32, d.Len())
	d.Shuffle(order, 3, 1<<40)
	if slices.Min(order) < 0 {
		t.Error("an epoch so late has negative samples")
	}
}

// TestCharactersAnywhere: a long text of characters of one to four bytes is read from any place as all of it is.
func TestCharactersAnywhere(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 7))
	letters := []rune("ab\né€\U0001F433 ")
	text := make([]rune, 10007)
	for i := range text {
		text[i] = letters[rng.IntN(len(letters))]
	}
	v := Vocabulary{Kind: ByCharacters}
	c := must.Get(openCharacters(fileIn(t, "a.txt", []byte(string(text))), &v))(t)
	r := must.Get(c.openTokens())(t)
	defer r.Close()
	for range 100 {
		from, n := rng.IntN(len(text)), 1+rng.IntN(3000)
		got := make([]int32, min(n, len(text)-from))
		must.Do(t, r.readTokens(got, int64(from)))
		if want := string(text[from : from+len(got)]); v.Decode(got) != want {
			t.Fatalf("%d characters from %d on differ", len(got), from)
		}
	}
}

// TestTokenFiles: the same tokens in all types of files, and both files of nanoGPT; classes are those of both.
func TestTokenFiles(t *testing.T) {
	values := []float64{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4}
	npy := func(descr string, width int) []byte {
		raw := []byte("\x93NUMPY\x01\x00\x50\x00")
		header := "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (20,), }"
		raw = append(raw, header+strings.Repeat(" ", 0x50-1-len(header))+"\n"...)
		for _, v := range values {
			raw = append(raw, binary.LittleEndian.AppendUint64(nil, uint64(v))[:width]...)
		}
		return raw
	}
	files := map[string][]byte{"a.bin": npy("<u2", 2)[0x5A:]}
	for descr, width := range widths {
		files[strings.Trim(descr, "<|")+".npy"] = npy(descr, width)
	}
	for name, content := range files {
		d := must.Get(Open(fileIn(t, name, content), Options{Positions: 7}))(t) // of 18, two samples
		tokens, labels := sampleOf(t, d, 1)
		if d.Len() != 2 || d.Classes != 10 || !slices.Equal(tokens, []int32{6, 5, 3, 5, 8, 9, 7}) || labels[6] != 9 {
			t.Errorf("%s: %d samples, %d classes, %v", name, d.Len(), d.Classes, tokens)
		}
	}
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "train.bin"), files["a.bin"], 0o600))
	must.Do(t, os.WriteFile(filepath.Join(dir, "val.bin"), []byte{1, 0, 2, 0, 3, 1, 4, 0}, 0o600))
	train, test := must.Get(Open(dir, Options{Positions: 3}))(t), must.Get(Open(dir, Options{Positions: 3, Split: Test}))(t)
	tokens, labels := sampleOf(t, test, 0)
	if train.Len() != 6 || test.Len() != 1 || train.Classes != 260 || test.Classes != 260 || !slices.Equal(tokens, []int32{1, 2, 259}) || labels[2] != 4 {
		t.Errorf("%d and %d samples of %d and %d classes, %v", train.Len(), test.Len(), train.Classes, test.Classes, tokens)
	}
	for name, content := range map[string][]byte{
		"shape.npy": encoded(t, npz.NewArray("x", dag.Int64, []int{2, 3}, make([]float64, 6))),
		"type.npy":  encoded(t, npz.NewArray("x", dag.Float32, []int{6}, make([]float64, 6))),
		"less.npy":  encoded(t, npz.NewArray("x", dag.Int64, []int{6}, make([]float64, 6)))[:100],
		"below.npy": encoded(t, npz.NewArray("x", dag.Int64, []int{6}, []float64{0, 1, -1, 2, 3, 4})),
	} {
		if _, err := Open(fileIn(t, name, content), Options{Positions: 1}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// encoded is an array as an .npy file.
func encoded(t *testing.T, a npz.Array) []byte {
	t.Helper()
	var zip strings.Builder
	must.Do(t, npz.Encode(&zip, []npz.Array{a}))
	whole := zip.String()
	begin := strings.Index(whole, "\x93NUMPY")
	return []byte(whole[begin : begin+strings.Index(whole[begin:], "\n")+1+len(a.Data)])
}

// TestWrittenText: every sentence of the text that dahl writes is one of the grammar, in which verbs and pronouns agree with their
// subjects, and the texts of both splits differ.
func TestWrittenText(t *testing.T) {
	list := func(words []string, ending string) string {
		return "(" + strings.Join(words, ending+"|") + ending + ")"
	}
	one := "(the|one) (" + list(adjectives, " ") + ")?" + list(nouns, "")
	some := "(the|some) (" + list(adjectives, " ") + ")?" + list(nouns, "s")
	object := "(" + one + "|" + some + ")"
	does, do := " "+list(verbs, "s")+" "+object, " "+list(verbs, "")+" "+object
	sentence := regexp.MustCompile("^(" + one + does + "( because it" + does + ")?|" + some + do + "( because they" + do + ")?)[.]$")
	train, test := written(100_000, Train), written(10_000, Test)
	lines := strings.Split(train+test, "\n")
	cut := 0
	for _, line := range lines {
		if !sentence.MatchString(line) {
			cut++
		}
	}
	if cut > 2 || len(lines) < 2000 { // the ends of both texts may be in the middle of one
		t.Errorf("%d of %d lines are no sentences", cut, len(lines))
	}
	if strings.HasPrefix(train, test[:100]) {
		t.Error("the splits begin alike")
	}
	d := must.Get(Open("text", Options{Positions: 64}))(t)
	if v := must.Get(d.Vocabulary.Encode(train))(t); d.Vocabulary.Check() != nil || d.Classes != len(d.Vocabulary.Characters) || len(v) != 100_000 || d.Len() != 1562 {
		t.Errorf("%d samples, vocabulary %q", d.Len(), d.Vocabulary.Characters)
	}
}

// FuzzText: a text that is taken gives back all of its characters.
func FuzzText(f *testing.F) {
	f.Add([]byte("now is the time for all good men"), false)
	f.Add([]byte("é€\U0001F433\xff"), true)
	f.Fuzz(func(t *testing.T, content []byte, bytes bool) {
		opt := Options{Positions: 1}
		if bytes {
			opt.Vocabulary.Kind = ByBytes
		}
		d, err := Open(fileIn(t, "a.txt", content), opt)
		if err != nil {
			return
		}
		var all []int32
		for i := range d.Len() {
			tokens, _ := sampleOf(t, d, int32(i))
			all = append(all, tokens...)
		}
		if got := d.Vocabulary.Decode(all); !strings.HasPrefix(string(content), got) {
			t.Fatalf("%q is read as %q", content, got)
		}
		if again, err := d.Vocabulary.Encode(d.Vocabulary.Decode(all)); err != nil || !slices.Equal(again, all) {
			t.Fatalf("%v becomes %v: %v", all, again, err)
		}
	})
}

// FuzzTokens: tokens that are taken are below the number of classes.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("\x93NUMPY\x01\x00\x50\x00{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }" + strings.Repeat(" ", 22) + "\n12345678"))
	f.Add([]byte("12345678"))
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, name := range []string{"a.npy", "a.bin"} {
			d, err := Open(fileIn(t, name, content), Options{Positions: 1})
			if err != nil {
				continue
			}
			for i := range d.Len() {
				if tokens, labels := sampleOf(t, d, int32(i)); tokens[0] < 0 || int(max(tokens[0], labels[0])) >= d.Classes {
					t.Fatalf("token %d of %d", tokens[0], d.Classes)
				}
			}
		}
	})
}
