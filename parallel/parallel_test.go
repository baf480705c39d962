package parallel

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
)

// TestDo: every number is called once, and the error is that of the least number even where another one comes first.
func TestDo(t *testing.T) {
	var calls [100]atomic.Int32
	least, other := errors.New("of 3"), errors.New("of 70")
	err := Do(t.Context(), len(calls), func(i int) error {
		calls[i].Add(1)
		return map[int]error{3: least, 70: other}[i]
	})
	if err != least {
		t.Errorf("error %v, want that of 3", err)
	}
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("%d was called %d times", i, n)
		}
	}
}

// TestDoEnded: nothing is called once the context has ended.
func TestDoEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Do(ctx, 5, func(int) error { panic("called") }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
