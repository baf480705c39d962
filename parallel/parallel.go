// Package parallel calls a function for many numbers at once, with a result that does not depend on timing.
package parallel

import (
	"cmp"
	"context"
	"runtime"
	"sync"
)

// Do calls do for 0 to n-1, as many at a time as there are processors, and waits for all of them. Once ctx has ended,
// the others get its error in place of a call. Do returns the error of the least number that has one: the first error in
// time would differ from run to run.
func Do(ctx context.Context, n int, do func(i int) error) error {
	var wait sync.WaitGroup
	errs := make([]error, n)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = do(i)
			}
		})
	}
	wait.Wait()
	return cmp.Or(errs...)
}
