package data

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dahl/nn/random"
)

// The text that dahl writes itself has sentences by this grammar. In a sentence all choices of a line are equally likely, but
// that a noun phrase has an adjective in one case of three, and a sentence goes on in one of two:
//
//	sentence    noun-phrase " " verb " " noun-phrase [" because " pronoun " " verb " " noun-phrase] "." newline
//	noun-phrase article " " [adjective " "] noun
//	article     "the" of all nouns, "one" of a single one, "some" of several
//	noun        one of nouns, with an "s" if there are several
//	verb        one of verbs, with an "s" if its subject is a single one
//	pronoun     "it" if the first subject is a single one, and "they" if there are several
//
// So a verb depends on a noun some words before it, and a pronoun on the start of its sentence. A network of sequences has to
// learn both.
var (
	nouns      = []string{"cat", "dog", "robot", "farmer", "king", "bird", "engineer", "whale"}
	adjectives = []string{"old", "quick", "green", "quiet", "brave", "tiny"}
	verbs      = []string{"see", "follow", "like", "paint", "help", "answer"}
)

// defaultCharacters is the length of the text for the training. The text for the test has a tenth.
const defaultCharacters = 100_000

// MostWritten bounds the characters of a text that dahl writes itself. They are made in memory.
const MostWritten = 1 << 26

// WrittenTokens is the number of its characters that differ.
func WrittenTokens() int { return len(grammarCharacters()) }

// grammarCharacters are the characters of all words, in the order of Unicode.
func grammarCharacters() string {
	list := []rune(strings.Join(slices.Concat(nouns, adjectives, verbs), "") + "thesomeone because itthey.\n")
	slices.Sort(list)
	return string(slices.Compact(list))
}

// writer writes sentences by draws that follow each other.
type writer struct {
	text  bytes.Buffer
	draws random.Stream
	drawn uint64
}

func (w *writer) below(n int) int {
	w.drawn++
	return int(w.draws.Below(w.drawn-1, uint64(n)))
}

func (w *writer) say(words ...string) {
	for _, word := range words {
		w.text.WriteString(word)
	}
}

// nounPhrase writes a noun phrase, and says whether there are several.
func (w *writer) nounPhrase() (several bool) {
	several = w.below(2) == 1
	switch {
	case w.below(2) == 0:
		w.say("the ")
	case several:
		w.say("some ")
	default:
		w.say("one ")
	}
	if w.below(3) == 0 {
		w.say(adjectives[w.below(len(adjectives))], " ")
	}
	w.say(nouns[w.below(len(nouns))])
	if several {
		w.say("s")
	}
	return several
}

// verbPhrase writes the verb of a subject, and its object.
func (w *writer) verbPhrase(several bool) {
	w.say(" ", verbs[w.below(len(verbs))])
	if !several {
		w.say("s")
	}
	w.say(" ")
	w.nounPhrase()
}

func (w *writer) sentence() {
	several := w.nounPhrase()
	w.verbPhrase(several)
	if w.below(2) == 1 {
		w.say(" because ", map[bool]string{false: "it", true: "they"}[several])
		w.verbPhrase(several)
	}
	w.say(".\n")
}

// written is the first characters of a split.
func written(characters int, split string) string {
	w := writer{draws: random.NewStream(0, "text."+split)}
	for w.text.Len() < characters {
		w.sentence()
	}
	return w.text.String()[:characters]
}

// openWritten opens the text that dahl writes itself. A spec is its length; empty means the default.
func openWritten(spec string, opt Options) (*Dataset, error) {
	characters := defaultCharacters
	if spec != "" {
		n, err := strconv.Atoi(spec)
		if err != nil || n < 1 || n > MostWritten {
			return nil, fmt.Errorf("%q is no length; write text, or text:100000 for so many characters", spec)
		}
		characters = n
	}
	if opt.Split == Test {
		characters = max(1, characters/10)
	}
	v := opt.Vocabulary
	if v.Kind == "" {
		v.Kind = ByCharacters
	}
	if v.Kind == ByCharacters && v.Characters == "" {
		v.Characters = grammarCharacters()
	}
	if err := v.Check(); err != nil {
		return nil, err
	}
	list, err := v.Encode(written(characters, opt.Split))
	if err != nil {
		return nil, err
	}
	w, err := newWindows(inMemory(list), 0, int64(len(list)), opt)
	if err != nil {
		return nil, err
	}
	d := w.dataset(v.Size())
	d.Name, d.Vocabulary = "text", &v
	d.Source = fmt.Sprintf("a text of %d characters by the grammar of package data, seed 0", characters)
	return d, nil
}
