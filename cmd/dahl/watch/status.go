package watch

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"dahl/cmd/cli"
	"dahl/energy/meter"
	"dahl/naming"
	"dahl/train"
)

// sample is the state of a training and its meters at a time.
type sample struct {
	at      time.Time
	live    train.Live
	counted []meter.Counted
}

// history has the samples of a training that are still needed, and values computed from earlier
// ones.
type history struct {
	began    sample   // the first one with a step to come
	recent   []sample // of the last rateWindow, by time
	rate     float64  // samples/s of the last window in which samples were trained on
	losses   course
	reserved int64
}

// rateWindow is the time over which rates are means.
const rateWindow = 2 * time.Second

// add takes a sample and forgets those that are too old for rates.
func (h *history) add(s sample) {
	if h.began.live.Epoch == 0 {
		h.began = s
	}
	h.recent = append(h.recent, s)
	old := slices.IndexFunc(h.recent, func(r sample) bool { return s.at.Sub(r.at) <= rateWindow })
	h.recent = slices.Delete(h.recent, 0, old)
	if s.live.Training && s.live.Samples > 0 {
		h.losses.add(s.live.Loss)
	}
}

// status is how a training is now.
type status struct {
	train.Live
	samplesPerS float64       // 0 means unknown
	busy        []busyShare   // by device
	power       []powerNow    // by meter
	spent       time.Duration // since it began or went on
	left        time.Duration // 0 means unknown
	losses      []float64     // from its begin
	resident    int64         // bytes; 0 means unknown
	reserved    int64
}

// busyShare is the part of the time that a device's units spend in tasks; negative means unknown.
type busyShare struct {
	device string
	share  float64
}

// powerNow is the reading of a meter. Zero means unknown.
type powerNow struct {
	of             string
	watts, celsius float64
}

// status compares the newest sample with the oldest that is not too old.
func (h *history) status() *status {
	from, now := h.recent[0], h.recent[len(h.recent)-1]
	s := &status{Live: now.live, losses: h.losses.means, reserved: h.reserved, spent: now.at.Sub(h.began.at)}
	span := now.at.Sub(from.at).Seconds()
	if samples, spent := now.live.Samples-from.live.Samples, now.live.Trained-from.live.Trained; samples > 0 && spent > 0 {
		h.rate = float64(samples) / spent.Seconds()
	}
	s.samplesPerS = h.rate
	for _, d := range now.live.Devices {
		share := busyShare{d.Name, -1}
		i := slices.IndexFunc(from.live.Devices, func(b train.LiveDevice) bool { return b.Name == d.Name })
		if i >= 0 && span > 0 && d.Busy > from.live.Devices[i].Busy {
			share.share = min(1, (d.Busy-from.live.Devices[i].Busy).Seconds()/span/float64(d.Units))
		}
		s.busy = append(s.busy, share)
	}
	for _, c := range now.counted {
		p := powerNow{of: c.Of, celsius: c.Celsius}
		i := slices.IndexFunc(from.counted, func(b meter.Counted) bool { return b.Of == c.Of })
		if i >= 0 && c.At.After(from.counted[i].At) {
			p.watts = (c.Joules - from.counted[i].Joules) / c.At.Sub(from.counted[i].At).Seconds()
		}
		s.power = append(s.power, p)
	}
	if done := now.live.Done - h.began.live.Done; done > 0 {
		s.left = time.Duration(float64(s.spent) * (1 - now.live.Done) / done)
	}
	return s
}

// course is the mean of a value over equal parts of the time, of which there are never many.
type course struct {
	means []float64
	sum   float64
	n     int // values in sum
	each  int // values of a mean; 0 means one
}

// courseParts bounds the parts.
const courseParts = 48

func (c *course) add(v float64) {
	c.each = max(1, c.each)
	c.sum, c.n = c.sum+v, c.n+1
	if c.n < c.each {
		return
	}
	c.means = append(c.means, c.sum/float64(c.n))
	c.sum, c.n = 0, 0
	if len(c.means) < courseParts {
		return
	}
	for i := range courseParts / 2 {
		c.means[i] = (c.means[2*i] + c.means[2*i+1]) / 2
	}
	c.means, c.each = c.means[:courseParts/2], 2*c.each
}

// lines are the page.
func (s *status) lines() []string {
	set := "training"
	if !s.Training {
		set = "through the test set"
	}
	page := []string{
		fmt.Sprintf("epoch    %d/%d  %s  step %d/%d, %s", s.Epoch, s.Epochs, cli.Bar(float64(s.Step)/float64(max(1, s.Steps)), 30), s.Step, s.Steps, set),
		strings.TrimRight(fmt.Sprintf("loss     %s  %s", s.lossText(), spark(s.losses)), " "),
		"speed    " + s.rateText(),
		"busy     " + s.busyText(),
		"power    " + s.powerText(),
	}
	memory := cli.ShortBytes(s.reserved) + " reserved for the network"
	if s.resident > 0 {
		memory += ", " + cli.ShortBytes(s.resident) + " held in all"
	}
	return append(page, "memory   "+memory, "left     "+s.leftText()+", after "+shortWait(s.spent))
}

// line is all that is needed in one line.
func (s *status) line() string {
	set := "step"
	if !s.Training {
		set = "test step"
	}
	return fmt.Sprintf("epoch %d/%d %s %s %d/%d  loss %s  %s  busy %s  left %s", s.Epoch, s.Epochs,
		cli.Bar(float64(s.Step)/float64(max(1, s.Steps)), 16), set, s.Step, s.Steps, s.lossText(), s.rateText(), s.busyText(), s.leftText())
}

func (s *status) lossText() string {
	if s.Samples == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", s.Loss)
}

func (s *status) rateText() string {
	if s.samplesPerS == 0 {
		return "- samples/s"
	}
	return naming.Thousands(int(math.Round(s.samplesPerS))) + " samples/s"
}

func (s *status) busyText() string {
	var each []string
	for _, b := range s.busy {
		if b.share < 0 {
			each = append(each, b.device+" -")
		} else {
			each = append(each, fmt.Sprintf("%s %.0f %%", b.device, 100*b.share))
		}
	}
	return cmp.Or(strings.Join(each, ", "), "-")
}

func (s *status) powerText() string {
	var each []string
	for _, p := range s.power {
		text := p.of
		if p.watts > 0 {
			text += " " + cli.ThreeDigits(p.watts) + " W"
		}
		if p.celsius > 0 {
			text += fmt.Sprintf(" at %.0f degrees", p.celsius)
		}
		each = append(each, text)
	}
	return cmp.Or(strings.Join(each, ", "), "no meter; dahl doctor says why")
}

func (s *status) leftText() string {
	if s.left == 0 && s.Done < 1 {
		return "-"
	}
	return shortWait(s.left)
}

// shortWait is a time to wait, in whole seconds: finer ones would flicker.
func shortWait(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// spark draws the course of values, from the least to the greatest; "" where the terminal may not know the
// characters.
func spark(values []float64) string {
	if !strings.Contains(strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG"))), "UTF") {
		return ""
	}
	marks := []rune("▁▂▃▄▅▆▇█")
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			least, most = min(least, v), max(most, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch at := (v - least) / (most - least); {
		case math.IsNaN(v) || math.IsInf(v, 0):
			b.WriteRune('!')
		case most == least:
			b.WriteRune(marks[0])
		default:
			b.WriteRune(marks[min(len(marks)-1, int(at*float64(len(marks))))])
		}
	}
	return b.String()
}
