package dag

import (
	"strings"
	"testing"

	"dahl/must"
)

func TestDOTGolden(t *testing.T) {
	g := must.Get(Expand(sampleGraph(t)))(t)
	var s strings.Builder
	must.Do(t, g.WriteDOT(&s))
	golden(t, "sample.dot", s.String())
}

// TestDOTArrows: b follows a because of x and y; c follows a only through b and by
// reading x, so no arrow a → c is drawn; w is carried from c to c.
func TestDOTArrows(t *testing.T) {
	g := parse(t, `graph g
buffer x uint8 [2] activation
buffer y uint8 [3] activation
buffer w uint8 [5] state
task a
  write x
  write y
task "say \"b\""
  readwrite y
  read x
task c
  read x
  read y
  readwrite w
`)
	var s strings.Builder
	must.Do(t, g.WriteDOT(&s))
	for _, want := range []string{
		`t1 [label="say \"b\"" fillcolor=`,
		`t0 -> t1 [label="y\nx"]`,
		`t1 -> t2 [label="y"]`,
		`t2 -> t2 [style=dashed constraint=false]`,
	} {
		must.Contain(t, s.String(), want)
	}
	if strings.Contains(s.String(), "t0 -> t2") {
		t.Error("an arrow that two others imply is drawn")
	}
}
