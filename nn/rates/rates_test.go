package rates_test

import (
	"math"
	"strings"
	"testing"

	"dahl/must"
	"dahl/nn/rates"
)

// TestScheduleRates: rates at chosen steps, derived by hand from the formulas above Schedule, of a
// rate of 8 where an epoch has 7 steps.
func TestScheduleRates(t *testing.T) {
	const r, perEpoch = 8, 7
	for text, want := range map[string]map[int]float64{
		"constant": {0: 8, 1000: 8},
		// Epochs 0 and 1 at 8, 2 and 3 at half of it, 4 and 5 at a quarter.
		"step every=2epochs gamma=0.5": {0: 8, 13: 8, 14: 4, 27: 4, 28: 2, 41: 2, 42: 1},
		// Without gamma a tenth, as in StepLR.
		"step every=3steps": {0: 8, 2: 8, 3: 0.8, 6: 0.08},
		// gamma to the number of milestones that are over, bisect_right(milestones, epoch) in MultiStepLR: epochs 0 and 1 at 8,
		// 2 to 4 at 4, from 5 on at 2.
		"multistep milestones=2/5epochs gamma=0.5":               {0: 8, 13: 8, 14: 4, 34: 4, 35: 2, 1000: 2},
		"multistep milestones=3/4/9steps warmup=2steps from=0.5": {0: 4, 1: 6, 2: 8, 4: 8, 5: 0.8, 6: 0.08, 10: 0.08, 11: 0.008},
		// cos is 1, ½, -½ and -1 after 0, 2, 4 and 6 sixths of π: 2 + 6·(1+cos)/2. After 12 it is 1 again.
		"cosine over=6steps min=2":                          {0: 8, 2: 6.5, 3: 5, 4: 3.5, 6: 2, 8: 3.5, 12: 8},
		"cosine_to over=6steps min=2":                       {0: 8, 2: 6.5, 3: 5, 4: 3.5, 6: 2, 7: 2, 12: 2, 1000: 2},
		"cosine over=2 epochs":                              {0: 8, 6: 8, 7: 4, 13: 4, 14: 0, 21: 4},
		"constant warmup=4steps":                            {0: 8. / 3, 1: 4, 2: 16. / 3, 4: 8, 5: 8}, // from a third, as in LinearLR
		"cosine,over=6steps,min=2,warmup=4steps,from=0.5":   {0: 4, 1: 5, 2: 6, 3: 7, 4: 8, 6: 6.5, 10: 2},
		"step every=1epoch gamma=0.5 warmup=2epochs from=0": {0: 0, 6: 0, 7: 4, 13: 4, 14: 8, 21: 4, 28: 2},
	} {
		s := must.Get(rates.Parse(text))(t)
		again, err := rates.Parse(s.String())
		if err != nil || again.String() != s.String() || again.PerStep != s.PerStep {
			t.Errorf("%s is written as %q, and read back as %+v: %v", text, s, again, err)
		}
		for step, rate := range want {
			// Some five roundings of numbers of at most 8, and a cosine that is off by one.
			for what, s := range map[string]rates.Schedule{"": s, " read back": again} {
				if got := s.Rates(r, perEpoch)(step); !(math.Abs(got-rate) <= 8*8*0x1p-53) {
					t.Errorf("%s%s: rate %v of step %d, want %v", text, what, got, step, rate)
				}
			}
		}
	}
	if got := (rates.Schedule{}).Rates(r, 1)(3); got != r {
		t.Errorf("the zero value has rate %v", got)
	}
}

// TestScheduleCheck: a schedule made in Go is refused where its text would be.
func TestScheduleCheck(t *testing.T) {
	for want, s := range map[string]rates.Schedule{
		"":                                  {},
		"is not one of":                     {Kind: "linear"},
		"every=0epochs":                     {Kind: "step", Gamma: 0.5},
		"milestones=5/5steps: write rising": {Kind: "multistep", Milestones: []int{5, 5}, PerStep: true},
		"milestones=epochs: write rising":   {Kind: "multistep"},
		"over=-3steps":                      {Kind: "cosine", Over: -3, PerStep: true},
		"min=NaN":                           {Kind: "cosine", Over: 3, Min: math.NaN()},
		"from=2: write a number fro":        {Warmup: 3, From: 2},
	} {
		if err := s.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", s, err, want)
		}
	}
}

// FuzzParseSchedule: what is read is written so that it is read back as the same.
func FuzzParseSchedule(f *testing.F) {
	f.Add("cosine over=90epochs warmup=5epochs min=1e-5")
	f.Add("step,every=500steps,gamma=0.5")
	f.Add("multistep milestones=30/80epochs")
	f.Add("constant,warmup=0steps")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := rates.Parse(text)
		if err != nil {
			return
		}
		again, err := rates.Parse(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q is read as %q, and that as %q: %v", text, s, again, err)
		}
		if rate := s.Rates(1, 7)(1000); math.IsNaN(rate) || rate < 0 {
			t.Fatalf("%q: rate %v", s, rate)
		}
	})
}
