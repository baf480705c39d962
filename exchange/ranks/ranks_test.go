package ranks

import (
	"fmt"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
)

// listed is a rank whose tasks are given: a task follows the one before it if chained, and else none.
type listed struct {
	number    int
	exchanges []*Exchange
	chained   bool
}

func (l *listed) File() string { return fmt.Sprintf("r%d", l.number) }
func (l *listed) Order() (order []int) {
	for i := range l.exchanges {
		order = append(order, i)
	}
	return order
}
func (l *listed) After(task int) []int {
	if l.chained && task > 0 {
		return []int{task - 1}
	}
	return nil
}
func (l *listed) Exchange(task int) *Exchange { return l.exchanges[task] }
func (l *listed) Describe(int) dag.Task {
	return dag.Task{Op: "work", Costs: []dag.Cost{{Key: dag.AnyDevice, Ns: 7}}, Placement: &dag.Placement{Device: fmt.Sprintf("gpu%d", l.number)}}
}

// moved joins ranks, and lists the bytes that each device reads of what each other one wrote.
func moved(t *testing.T, chained bool, exchanges ...[]*Exchange) string {
	t.Helper()
	var all []Rank
	for n, x := range exchanges {
		all = append(all, &listed{n, x, chained})
	}
	g := must.Get(New("g", all).Graph())(t)
	must.Do(t, g.Check())
	bytes := map[string]int64{}
	home := map[dag.BufferID]string{}
	for i := range g.Tasks {
		k := &g.Tasks[i]
		for _, a := range k.Accesses {
			switch n := g.Buffers[a.Buffer].Bytes(); {
			case a.Mode == dag.Write:
				home[a.Buffer] = k.Placement.Device
			case home[a.Buffer] != k.Placement.Device:
				if a.Box != nil {
					n = a.Box.Elems()
				}
				bytes[home[a.Buffer][3:]+k.Placement.Device[3:]] += n
			}
		}
	}
	var out []string
	for from := range exchanges {
		for to := range exchanges {
			if n := bytes[fmt.Sprintf("%d%d", from, to)]; n > 0 {
				out = append(out, fmt.Sprintf("%d>%d:%d", from, to, n))
			}
		}
	}
	return strings.Join(out, " ")
}

// TestExchanges: the bytes of each exchange by its definition.
func TestExchanges(t *testing.T) {
	of := func(kind string, bytes int64) *Exchange { return &Exchange{Kind: kind, Bytes: bytes} }
	for _, c := range []struct {
		name, want string
		chained    bool
		exchanges  [][]*Exchange
	}{
		// Slices end at 101/3, 2·101/3 and 101, whole bytes: 33, 34 and 34. A rank sends each other one its slice of the input, and the rank's own of the sum.
		{"all-reduce of three", "0>1:67 0>2:67 1>0:67 1>2:68 2>0:67 2>1:68", true, [][]*Exchange{{of("allreduce", 101)}, {of("allreduce", 101)}, {of("allreduce", 101)}}},
		{"too small for slices", "0>1:2 0>2:2 1>0:2 1>2:2 2>0:2 2>1:2", true, [][]*Exchange{{of("all_reduce", 2)}, {of("all_reduce", 2)}, {of("all_reduce", 2)}}},
		{"all-gather of unlike inputs", "0>1:5 1>0:7", true, [][]*Exchange{{of("_allgather_base", 5)}, {of("_allgather_base", 7)}}},
		{"reduce-scatter", "0>1:4 1>0:3", true, [][]*Exchange{{of("_reduce_scatter_base", 7)}, {of("_reduce_scatter_base", 7)}}},
		{"reduce", "1>0:11 2>0:11", true, [][]*Exchange{{of("reduce", 11)}, {of("reduce", 11)}, {of("reduce", 11)}}},
		{"broadcast", "0>1:13 0>2:13", true, [][]*Exchange{{of("broadcast", 13)}, {of("broadcast", 13)}, {of("broadcast", 13)}}},
		{"scatter", "0>1:6", true, [][]*Exchange{{of("scatter", 11)}, {of("scatter", 0)}}},
		// Each sends the other one's half of its own: 5-2 of 5 and 3 of 7.
		{"all-to-all of unlike inputs", "0>1:3 1>0:3", true, [][]*Exchange{{of("all_to_allv", 5)}, {of("all_to_allv", 7)}}},
		{"message", "2>0:17", true, [][]*Exchange{{{Kind: "recv", Peer: 2}}, {nil}, {{Kind: "send", Bytes: 17}}}},
		// Two groups within one training, by names alone and by their ranks, and one of all.
		{"groups", "0>1:4 1>0:4 2>3:6 3>2:6", true, [][]*Exchange{
			{{Kind: "allreduce", Bytes: 4, Group: "a"}}, {{Kind: "allreduce", Bytes: 4, Group: "a"}},
			{{Kind: "allreduce", Bytes: 6, Members: []int{2, 3}}}, {{Kind: "allreduce", Bytes: 6, Members: []int{2, 3}}}}},
		// Ranks that come to exchanges of unlike groups in another order, on streams of their own, do not wait for each other in a circle.
		{"other order", "0>1:8 1>0:8", false, [][]*Exchange{
			{{Kind: "allgather", Bytes: 3, Group: "a"}, {Kind: "allgather", Bytes: 5, Group: "b"}},
			{{Kind: "allgather", Bytes: 5, Group: "b"}, {Kind: "allgather", Bytes: 3, Group: "a"}}}},
		// A rank of the group has no recording, and nobody knows the other kind: both stay as recorded.
		{"kept", "", true, [][]*Exchange{{{Kind: "allreduce", Bytes: 9, Ranks: 3}, of("wait", 9)}, {{Kind: "allreduce", Bytes: 9, Ranks: 3}, of("wait", 9)}}},
	} {
		if got := moved(t, c.chained, c.exchanges...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// BenchmarkMessages: messages that each have a tag of their own and wait for none. Time grows with their number and not with its square.
func BenchmarkMessages(b *testing.B) {
	for _, n := range []int{10_000, 40_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			sent, received := make([]*Exchange, n), make([]*Exchange, n)
			for i := range n {
				sent[i] = &Exchange{Kind: "send", Bytes: 8, Peer: 1, Tag: fmt.Sprint(i)}
				received[n-1-i] = &Exchange{Kind: "recv", Tag: fmt.Sprint(i)}
			}
			for b.Loop() {
				if _, err := New("g", []Rank{&listed{0, sent, false}, &listed{1, received, false}}).Graph(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestMistakes: ranks that cannot meet are one line.
func TestMistakes(t *testing.T) {
	a, b := &Exchange{Kind: "allreduce", Bytes: 8}, &Exchange{Kind: "broadcast", Bytes: 8}
	for want, exchanges := range map[string][2][]*Exchange{
		"r1: rank 1 has broadcast of 8 bytes where rank 0 has allreduce": {{a}, {b}},
		"r1: rank 1 has fewer exchanges than others":                     {{a, a}, {a}},
	} {
		_, err := New("g", []Rank{&listed{0, exchanges[0], true}, &listed{1, exchanges[1], true}}).Graph()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
}

// TestShifted: of 8 recorded ranks, rank 1 has a group {1, 3}, of ranks that are two apart. In it, rank 6 of 16 is with 4.
func TestShifted(t *testing.T) {
	x := &Exchange{Kind: "allreduce", Ranks: 2, Members: []int{1, 3}}
	if got := fmt.Sprint(x.Shifted(6, 16, 8).Members); got != "[4 6]" {
		t.Errorf("members %s", got)
	}
	x.Ranks = 8
	if got := x.Shifted(6, 16, 8); got.Ranks != 16 || got.Members != nil {
		t.Errorf("the group of all recorded ranks has %d ranks %v, want all 16", got.Ranks, got.Members)
	}
	if x := (&Exchange{Kind: "send"}).Shifted(0, 2, 2); x != nil {
		t.Errorf("a message stays as recorded, not %v", x)
	}
}
