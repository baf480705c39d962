// Package rates has the schedules of learning rates.
package rates

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"dahl/naming"
)

// Schedule says how the learning rate changes while a training goes on, like PyTorch's scheduler of
// the same meaning. With r the optimiser's rate and t the periods that are over (epochs, or steps):
//
//	constant   r
//	step       r·gamma^⌊t/every⌋                         StepLR
//	multistep  r·gamma^(number of milestones ≤ t)        MultiStepLR
//	cosine     min + (r - min)·(1 + cos(π·t/over))/2     CosineAnnealingLR, whose T_max is over
//	cosine_to  the same until over, and min afterwards   nanoGPT's get_lr
//
// A warm-up may come before each of them, and t counts from its end. Until then the rate is
//
//	r·(from + (1 - from)·t/warmup)                       LinearLR, joined by SequentialLR
//
// The rate is a function of the step alone. In particular over does not follow from the number of
// epochs: a training that is continued for more epochs has the same rates as one of so long from the start.
// After over periods the cosine rises again, as PyTorch's does, and cosine_to does not. The warm-up of nanoGPT in W steps
// is warmup=W with from=1/(W+1), and its lr_decay_iters is W + over. Hugging Face's
// get_cosine_schedule_with_warmup is cosine with from=0 and its training steps as warmup + over.
//
// PyTorch computes most rates from the one before. They differ from these by some roundings. The
// zero value is constant.
type Schedule struct {
	Kind    string // a name in Schedules. Empty means constant.
	PerStep bool   // a period is a step; else it is an epoch, in which the rate stays the same

	Every      int     // of step: periods between two changes
	Milestones []int   // of multistep: the periods before the changes, rising
	Gamma      float64 // of step and multistep
	Over       int     // of cosine and cosine_to: periods down to Min
	Min        float64 // of these: the least rate
	Warmup     int     // periods. Zero means none.
	From       float64 // share of the rate with which the warm-up begins
}

// Info is a line of the table of schedules.
type Info struct {
	Name, Doc string
	// rate is the learning rate t periods after the warm-up, where the optimiser's is r.
	rate func(s *Schedule, r float64, t int) float64
}

// Schedules is the table of schedules.
func Schedules() []Info {
	return []Info{
		{"constant", "always the optimiser's rate", func(_ *Schedule, r float64, _ int) float64 { return r }},
		{"step", "the rate times gamma after every so many epochs or steps", func(s *Schedule, r float64, t int) float64 {
			return r * math.Pow(s.Gamma, float64(t/s.Every))
		}},
		{"multistep", "the rate times gamma after each of some numbers of epochs or steps", func(s *Schedule, r float64, t int) float64 {
			over, _ := slices.BinarySearch(s.Milestones, t+1)
			return r * math.Pow(s.Gamma, float64(over))
		}},
		{"cosine", "half a cosine down to min, over so many epochs or steps", func(s *Schedule, r float64, t int) float64 {
			return s.cosine(r, t)
		}},
		{"cosine_to", "half a cosine down to min, over so many epochs or steps, and min from then on", func(s *Schedule, r float64, t int) float64 {
			return s.cosine(r, min(t, s.Over))
		}},
	}
}

func (s *Schedule) cosine(r float64, t int) float64 {
	return s.Min + float64((r-s.Min)*(1+math.Cos(math.Pi*float64(t)/float64(s.Over)))/2)
}

func (i Info) name() string { return i.Name }

// info is the schedule's line of the table.
func (s *Schedule) info() (Info, error) {
	if s.Kind == "" {
		return Schedules()[0], nil
	}
	return naming.Find("schedule", s.Kind, Schedules(), Info.name)
}

// Rates is the learning rate by training step, counted from 0, where an epoch has perEpoch steps and
// the optimiser's rate is r. The schedule has to pass Check.
func (s Schedule) Rates(r float64, perEpoch int) func(step int) float64 {
	info, err := s.info()
	if err != nil {
		panic("nn: " + err.Error())
	}
	return func(step int) float64 {
		t := step
		if !s.PerStep {
			t /= perEpoch
		}
		if t < s.Warmup {
			return r * (s.From + float64((1-s.From)*float64(t)/float64(s.Warmup)))
		}
		return info.rate(&s, r, t-s.Warmup)
	}
}

// scheduleSetting is a setting in the text of a schedule, behind its name: a number, or periods, or several of these with
// / between. The
// periods of a schedule of its own have to be given.
type scheduleSetting struct {
	name      string
	of        string                   // the schedules that have it. Empty means all.
	periods   func(*Schedule) *int     // Nil means it is something else.
	several   func(*Schedule) *[]int   // Nil means it is something else.
	number    func(*Schedule) *float64 // Nil means it is periods.
	otherwise float64                  // the number where none is given, PyTorch's default
	most      float64                  // of a number, which is at least 0
}

// scheduleSettings is the table of settings, in the order in which a schedule is written.
func scheduleSettings() []scheduleSetting {
	return []scheduleSetting{
		{name: "every", of: "step", periods: func(s *Schedule) *int { return &s.Every }},
		{name: "milestones", of: "multistep", several: func(s *Schedule) *[]int { return &s.Milestones }},
		{name: "gamma", of: "step multistep", number: func(s *Schedule) *float64 { return &s.Gamma }, otherwise: 0.1, most: 1e9},
		{name: "over", of: "cosine cosine_to", periods: func(s *Schedule) *int { return &s.Over }},
		{name: "min", of: "cosine cosine_to", number: func(s *Schedule) *float64 { return &s.Min }, most: 1e9},
		{name: "warmup", periods: func(s *Schedule) *int { return &s.Warmup }},
		{name: "from", number: func(s *Schedule) *float64 { return &s.From }, otherwise: 1. / 3, most: 1},
	}
}

// Parse reads a schedule: its name and its settings, with spaces or commas between, as in
// "cosine over=90epochs warmup=5epochs min=1e-5" or "step,every=500steps,gamma=0.5". All periods have one unit.
func Parse(text string) (Schedule, error) {
	for _, unit := range []string{"epoch", "step"} {
		text = strings.ReplaceAll(text, " "+unit, unit) // no setting begins so
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == ',' })
	if len(words) == 0 {
		return Schedule{}, fmt.Errorf("no schedule is given; write one of %s", strings.Join(naming.List(Schedules(), Info.name), ", "))
	}
	s := Schedule{Kind: words[0]}
	if _, err := s.info(); err != nil {
		return Schedule{}, err
	}
	given := map[string]string{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		if given[key] != "" || value == "" {
			return Schedule{}, fmt.Errorf("schedule %s: %q; write each setting once, as in warmup=5epochs", s.Kind, word)
		}
		given[key] = value
	}
	var known []string
	unit := ""
	for _, set := range scheduleSettings() {
		if !set.isOf(s.Kind) {
			continue
		}
		known = append(known, set.name)
		if err := set.read(&s, given[set.name], &unit); err != nil {
			return Schedule{}, fmt.Errorf("schedule %s: %s=%s: %w", s.Kind, set.name, given[set.name], err)
		}
		delete(given, set.name)
	}
	for _, key := range slices.Sorted(maps.Keys(given)) {
		return Schedule{}, fmt.Errorf("schedule %s has no setting %q; it has %s%s", s.Kind, key, strings.Join(known, ", "), naming.DidYouMean(key, known))
	}
	s.PerStep = unit == "step"
	return s, nil
}

// read takes the value of a setting, "" where none is given. All periods have the unit of the
// first.
func (set *scheduleSetting) read(s *Schedule, value string, unit *string) error {
	if set.number != nil {
		x, err := set.otherwise, error(nil)
		if value != "" {
			x, err = strconv.ParseFloat(value, 64)
		}
		if err != nil || !(x >= 0 && x <= set.most) {
			return fmt.Errorf("write a number from 0 to %g", set.most)
		}
		*set.number(s) = x
		return nil
	}
	if value == "" && set.of == "" {
		return nil
	}
	of := strings.TrimLeft(value, "0123456789/")
	periods, err := set.parsePeriods(strings.TrimSuffix(value, of))
	if of = strings.TrimSuffix(of, "s"); err != nil || of != "epoch" && of != "step" {
		if set.several != nil {
			return fmt.Errorf("write rising numbers of epochs or of steps, such as %s=30/80epochs", set.name)
		}
		return fmt.Errorf("write a number of epochs or of steps, such as %s=5epochs or %s=500steps", set.name, set.name)
	}
	if *unit != "" && *unit != of {
		return fmt.Errorf("write all periods of a schedule in epochs, or all in steps")
	}
	*unit = of
	if set.several != nil {
		*set.several(s) = periods
	} else {
		*set.periods(s) = periods[0]
	}
	return nil
}

// parsePeriods reads rising numbers with / between, or one of them where the setting has one.
func (set *scheduleSetting) parsePeriods(text string) (all []int, err error) {
	for word := range strings.SplitSeq(text, "/") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || len(all) > 0 && (set.several == nil || n <= all[len(all)-1]) {
			return nil, fmt.Errorf("period %q", word)
		}
		all = append(all, n)
	}
	return all, nil
}

func (set *scheduleSetting) isOf(kind string) bool {
	return set.of == "" || slices.Contains(strings.Fields(set.of), kind)
}

// Check reports settings that [ParseSchedule] would refuse.
func (s Schedule) Check() error {
	_, err := Parse(s.String())
	return err
}

// String is the schedule as [ParseSchedule] reads it back.
func (s Schedule) String() string {
	info, err := s.info()
	text, unit := info.Name, "epochs"
	if err != nil {
		return s.Kind
	}
	if s.PerStep {
		unit = "steps"
	}
	for _, set := range scheduleSettings() {
		switch {
		case !set.isOf(info.Name) || set.of == "" && s.Warmup == 0:
		case set.number != nil:
			text += fmt.Sprintf(" %s=%v", set.name, *set.number(&s))
		case set.several != nil:
			text += fmt.Sprintf(" %s=%s%s", set.name, strings.Join(strings.Fields(strings.Trim(fmt.Sprint(*set.several(&s)), "[]")), "/"), unit)
		default:
			n, of := *set.periods(&s), unit
			if n == 1 {
				of = strings.TrimSuffix(unit, "s")
			}
			text += fmt.Sprintf(" %s=%d%s", set.name, n, of)
		}
	}
	return text
}
