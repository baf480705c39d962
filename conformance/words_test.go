package conformance

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

var (
	sentenceEnd = regexp.MustCompile(`[.;:!?]\)?\s+|[.;:]\)?$|\n\s*\n`)
	soThat      = regexp.MustCompile(`(?i)\bso that\b`) // a purpose, and no relative clause
	nilColon    = regexp.MustCompile(`\bnil:\s`)
	relative    = regexp.MustCompile(`(?i)\b(that|which|what|whose|who|whom)\b`)
	hiddenNoun  = regexp.MustCompile(`(?i)\bso many\b|\b(is|are) what\b|\bwhat (a|an|the) \w+ (is|are|has|have) of\b|\bbeside\b|\bthose of\b|\bthat of\b|\b(is|are) of\b|\botherwise than\b|\bnone that\b`)
)

// TestWords holds the comments of all hand-written Go files without tests to the rule of words: the subject of a sentence is an
// identifier or a noun of the field, and a sentence has at most one word that begins a relative clause. A reader understands
// such a sentence at first reading, and has to unfold two nested clauses. Phrases in which a pronoun or a preposition stands for
// a noun or a verb ("those of", "is what", "beside") are refused, too.
func TestWords(t *testing.T) {
	t.Chdir("..")
	eachGoFile(t, func(file string, fset *token.FileSet, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") || ast.IsGenerated(f) {
			return
		}
		for _, comment := range f.Comments {
			for _, s := range unreadable(comment.Text()) {
				t.Errorf("%s: %s", fset.Position(comment.Pos()), s)
			}
		}
	})
}

// unreadable are the sentences of a text that break the rule of words, each with the reason.
func unreadable(text string) (found []string) {
	if nilColon.MatchString(text) {
		found = append(found, `"nil means" in place of "nil:"`)
	}
	for _, s := range sentenceEnd.Split(text, -1) {
		s = strings.Join(strings.Fields(s), " ")
		if words := relative.FindAllString(soThat.ReplaceAllString(s, ""), -1); len(words) > 1 {
			found = append(found, "more than one relative clause ("+strings.Join(words, ", ")+"): "+s)
		}
		if phrase := hiddenNoun.FindString(s); phrase != "" {
			found = append(found, `a noun in place of "`+phrase+`": `+s)
		}
	}
	return found
}

// TestUnreadable has texts by the number of their sentences that break the rule.
func TestUnreadable(t *testing.T) {
	for text, want := range map[string]int{
		"Compile gives every buffer the largest number of versions that any memory keeps of it.": 0,
		"PartBytes is the chunk size, so that a link that is busy delays one chunk.":             0,
		"A task that ends wakes its successors; a transfer that ends wakes them, too.":           0,
		"A task that ends.\n\nA unit that sleeps":                                                0,
		"Zero means 1: layers that differ keep theirs.":                                          0,
		"A task that waits for a buffer that moves.":                                             1,
		"The layer whose\nweights are those\n\tthat others share. It is what\nit was.":           2,
		"Beside the kernel a task (what it reads.) is what it costs.":                            2,
		"Costs of the task; nil: by the models.":                                                 1,
		"Axes are what the dimensions are of.":                                                   1,
	} {
		if got := unreadable(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}
