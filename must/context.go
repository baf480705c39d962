package must

import (
	"context"
	"sync/atomic"
	"testing"
)

// EndingContext is a context that ends when it is looked at for the nth time.
type EndingContext struct {
	context.Context
	end  context.CancelFunc
	left atomic.Int64
}

// EndsAtLook makes a context that ends at the nth look.
func EndsAtLook(t testing.TB, n int) *EndingContext {
	ctx, end := context.WithCancel(t.Context())
	e := &EndingContext{Context: ctx, end: end}
	e.left.Store(int64(n))
	return e
}

// Err is a look.
func (e *EndingContext) Err() error {
	if e.left.Add(-1) <= 0 { // later looks may overtake the nth one before it has ended the context
		e.end()
	}
	return e.Context.Err()
}

// Left is how many looks are left.
func (e *EndingContext) Left() int { return int(e.left.Load()) }
