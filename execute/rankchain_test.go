package execute

import (
	"context"
	"testing"
	"time"

	"dahl/schedule"
)

// TestMessageTimes: rank 0 gets a time for each pair of neighbours and each size, and the others none.
func TestMessageTimes(t *testing.T) {
	p := nodes(t, 1, 2, 1)
	together(t, 3, 11, func(n *Ranks) error {
		times, err := MessageTimes(context.Background(), p, n, []int64{3, 70_001}, 7)
		switch {
		case n.Rank > 0 && times != nil:
			t.Errorf("rank %d has times", n.Rank)
		case n.Rank == 0 && err == nil && len(times) != 2:
			t.Errorf("%d pairs of three nodes", len(times))
		}
		for _, of := range times {
			if len(of) != 2 || min(of[0], of[1]) <= 0 {
				t.Errorf("messages of two sizes took %v", of)
			}
		}
		return err
	})
}

// TestMessageTime: the second worker's clock is 100 ahead. Between two tasks of one worker lie two messages and a task of the other: 20 with a
// task of 7, 32 with one of 10, and 30 with one of 5. So two messages take 13, 22 and 25, and one takes half the median.
func TestMessageTime(t *testing.T) {
	span := func(start, end time.Duration) schedule.Span { return schedule.Span{Start: start, End: end} }
	s := &schedule.Schedule{Spans: []schedule.Span{span(0, 10), span(114, 121), span(30, 40), span(153, 158), span(70, 71)}}
	if got, want := messageTime(s), 11*time.Nanosecond; got != want {
		t.Errorf("a message takes %v, want %v", got, want)
	}
}
