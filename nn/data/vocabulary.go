package data

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dahl/naming"
)

// The kinds of vocabularies.
const (
	ByBytes      = "bytes"
	ByCharacters = "characters"
	ByMerges     = "merges" // of the files of a directory
)

// VocabularyKinds lists those that need no files, the default first.
func VocabularyKinds() []string { return []string{ByCharacters, ByBytes} }

// Vocabulary is the pieces of a text that are tokens.
type Vocabulary struct {
	Kind       string `json:"kind"`                 // of [VocabularyKinds], or [ByMerges]
	Characters string `json:"characters,omitempty"` // of tokens that are characters: in the order of their numbers, which is Unicode's

	// Pieces of a vocabulary by merges, in the order of their numbers, and its merges, the first one first: see [ReadMerges].
	Pieces []string `json:"pieces,omitempty"`
	Merges []string `json:"merges,omitempty"`
}

// VocabularyOf is a kind of vocabulary by its name, or the vocabulary that a directory has the merges of.
func VocabularyOf(name string) (Vocabulary, error) {
	if slices.Contains(VocabularyKinds(), name) || name == "" {
		return Vocabulary{Kind: name}, nil
	}
	if !hasMerges(name) {
		v := Vocabulary{Kind: name}
		return v, v.unknown()
	}
	v, err := ReadMerges(name)
	if err != nil {
		return Vocabulary{}, err
	}
	return *v, nil
}

// unknown refuses the kind.
func (v *Vocabulary) unknown() error {
	return fmt.Errorf("vocabulary %q: want %s, or a directory with %s and %s%s", v.Kind, naming.OneOf(VocabularyKinds()), piecesFile, mergesFile, naming.DidYouMean(v.Kind, VocabularyKinds()))
}

// Check reports a vocabulary that no text has.
func (v *Vocabulary) Check() error {
	list := []rune(v.Characters)
	switch {
	case v.Kind == ByMerges:
		return v.checkMerges()
	case !slices.Contains(VocabularyKinds(), v.Kind):
		return v.unknown()
	case v.Kind == ByCharacters && (len(list) == 0 || !utf8.ValidString(v.Characters)) || v.Kind == ByBytes && len(list) > 0:
		return fmt.Errorf("vocabulary of %s: characters %.20q", v.Kind, v.Characters)
	}
	for i := range list[:max(0, len(list)-1)] {
		if list[i] >= list[i+1] {
			return fmt.Errorf("vocabulary: character %q comes before %q; want each once, in the order of Unicode", list[i], list[i+1])
		}
	}
	return nil
}

// Size is the number of tokens.
func (v *Vocabulary) Size() int {
	switch v.Kind {
	case ByBytes:
		return 256
	case ByMerges:
		return len(v.Pieces)
	}
	return utf8.RuneCountInString(v.Characters)
}

// Encode is the tokens of a text.
func (v *Vocabulary) Encode(text string) (tokens []int32, err error) {
	switch v.Kind {
	case ByMerges:
		m, err := v.merging()
		if err != nil {
			return nil, err
		}
		return m.encode(text)
	case ByBytes:
		for _, b := range []byte(text) {
			tokens = append(tokens, int32(b))
		}
		return tokens, nil
	}
	numbers := v.numbers()
	for at, c := range text {
		token, known := numbers[c]
		if !known {
			return nil, fmt.Errorf("character %q at byte %d is not in the vocabulary %q", c, at, v.Characters)
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// numbers is the token of each character.
func (v *Vocabulary) numbers() map[rune]int32 {
	numbers := map[rune]int32{}
	for _, c := range v.Characters {
		numbers[c] = int32(len(numbers))
	}
	return numbers
}

// Decode is the text of tokens. A token beyond the vocabulary, which a network with more outputs may say, is U+FFFD.
func (v *Vocabulary) Decode(tokens []int32) string {
	var text strings.Builder
	list := []rune(v.Characters)
	for _, token := range tokens {
		switch {
		case token < 0 || int(token) >= v.Size():
			text.WriteRune(utf8.RuneError)
		case v.Kind == ByBytes:
			text.WriteByte(byte(token))
		case v.Kind == ByMerges:
			text.Write(bytesOfPiece(v.Pieces[token]))
		default:
			text.WriteRune(list[token])
		}
	}
	return text.String()
}
