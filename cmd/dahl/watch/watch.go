package watch

import (
	"fmt"
	"io"
	"time"

	"dahl/cmd/cli"
	"dahl/energy/meter"
	"dahl/train"
	"dahl/train/budget"
)

const (
	watchEvery = 250 * time.Millisecond // between two looks at a training
	plainEvery = 10 * time.Second       // between two lines where there is no terminal
)

// Help is the paragraph about it in the help of commands.
const Help = `On a terminal a line at the bottom says how far the epoch is. --watch makes a page of it: epoch
and step, the loss and its course, samples per second, how busy each device is, watts and temperature
where there is a meter, memory and the time that is left. Where the standard error is no terminal,
--watch prints a line there every ten seconds. Neither changes a weight, and a step waits for neither.`

// Watcher shows a training while it runs: on a terminal as a line, or with --watch as a page; elsewhere with
// --watch as a line now and then.
type Watcher struct {
	live    func() train.Live
	counted func() []meter.Counted
	past    history
	page    *cli.Page // nil means no terminal
	whole   bool      // the page, not only a line of it
	plain   io.Writer // for lines; nil means none
	printed time.Time // the last line

	stop, stopped chan struct{}
}

// New returns a watcher that shows nothing yet. Reserved has the bytes that the network takes in
// each memory.
func New(t *train.Trainer, meters *train.Meters, reserved []int64, page *cli.Page, whole bool, stderr io.Writer) *Watcher {
	w := &Watcher{live: t.Live, counted: meters.Now, page: page, whole: whole, stop: make(chan struct{}), stopped: make(chan struct{})}
	for _, bytes := range reserved {
		w.past.reserved += bytes
	}
	if whole && page == nil {
		w.plain = stderr
	}
	return w
}

// Start looks at the training now and then, until [Watcher.End].
func (w *Watcher) Start() {
	if w.page == nil && w.plain == nil {
		close(w.stopped)
		return
	}
	go func() {
		defer close(w.stopped)
		w.look(time.Now())
		ticks := time.Tick(watchEvery)
		for {
			select {
			case <-w.stop:
				w.page.Clear()
				return
			case <-ticks:
				w.look(time.Now())
			}
		}
	}()
}

// End takes away what is shown.
func (w *Watcher) End() {
	close(w.stop)
	<-w.stopped
}

// look shows how the training is at a time.
func (w *Watcher) look(now time.Time) {
	w.past.add(sample{now, w.live(), w.counted()})
	if w.past.began.live.Epoch == 0 {
		return // nothing has run
	}
	s := w.past.status()
	if s.resident = 0; w.whole {
		s.resident = budget.Resident()
	}
	switch {
	case w.page != nil && w.whole:
		w.page.Show(s.lines()...)
	case w.page != nil:
		w.page.Show(s.line())
	case w.printed.IsZero():
		w.printed = now // the first line comes when there is something to say
	case now.Sub(w.printed) >= plainEvery:
		fmt.Fprintln(w.plain, s.line())
		w.printed = now
	}
}
