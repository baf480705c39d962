package conformance

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/best"
	"dahl/plan/certificate"
	"dahl/plan/problem"
	"dahl/plan/relax"
	"dahl/platforms"
	"dahl/train"
)

// TestFamilies measures what each family of rows is worth: the bounds of the plan's own choice and of the lowest leaf, with all rows and without
// one family.
//
//	DAHL_FAMILIES="manycore mlp time" go test ./conformance -run TestFamilies -v
func TestFamilies(t *testing.T) {
	asked := strings.Fields(os.Getenv("DAHL_FAMILIES"))
	if len(asked) == 0 {
		t.Skip("DAHL_FAMILIES=MACHINE NETWORK OBJECTIVE measures")
	}
	w := &train.Workload{Samples: train.Samples{Train: 32}, Options: train.Options{OtherMachine: true, Batch: 32}, Model: must.Get(models.ByName(asked[1]))(t), Platform: must.Get(platforms.Load(asked[0]))(t)}
	must.Do(t, w.Lower())
	s := must.Get(w.Space(w.Platform, "", must.Get(w.Tiles())(t)...))(t)
	s.Space.Shares = nil
	unit := 1e9
	for _, steady := range []bool{true, false}[:1+len(asked[3:])] { // a step that runs alone as well, with a fourth word
		aim := problem.Aim{Objective: problem.Objective(asked[2]), Steady: steady}
		found := must.Get(best.Find(t.Context(), &s.Space, best.Options{Aim: aim, Nodes: 2000, Brief: true}))(t)
		fmt.Printf("CASE %v steady=%v value %.6g choice %s\n", asked, steady, found.Value, found.Choice)
		models := &certificate.Models{Steady: steady}
		// The plan's own choice, and the set with the least bound.
		sets := map[string]float64{}
		model := func(devices string) *certificate.Model {
			c := found.Choice
			c.Devices = devices
			priced, err := s.Price(c)
			if err != nil {
				return nil
			}
			m := must.Get(models.Of(priced, priced.Program.Graphs[0].Hash(), aim.Objective))(t)
			return m
		}
		value := found.Value * unit
		lowest, least := "", 0.0
		for _, devices := range s.Devices {
			m := model(devices)
			if m == nil {
				continue
			}
			p := must.Get(relax.Area(t.Context(), m, value))(t)
			b := must.Get(p.Bound(m))(t)
			if sets[devices] = b; least == 0 || b < least {
				lowest, least = devices, b
			}
		}
		list := []string{found.Devices, lowest}
		for _, devices := range slices.Compact(list) {
			m := model(devices)
			families := func(how string, bound func() []*certificate.Proof) {
				begun := time.Now()
				of := func() (float64, []*certificate.Proof) {
					proofs := bound()
					l := &certificate.Leaf{}
					must.Do(t, l.Add(m, proofs...))
					return l.Bound() * unit, proofs
				}
				all, proofs := of()
				used := map[certificate.Family]bool{}
				for _, p := range proofs {
					for _, r := range p.Rows {
						used[r.Row.Family] = true
					}
				}
				fmt.Printf("ROW %v %s steady=%v %q tasks=%d area=%.5g all=%.6g value=%.6g (%.1fs)\n", asked, how, steady, devices, len(m.Tasks), sets[devices], all, value, time.Since(begun).Seconds())
				if used[certificate.Pool] || used[certificate.Period] || used[certificate.Spread] {
					for _, pair := range [][]certificate.Family{{certificate.Pool, certificate.Period}, {certificate.Pool, certificate.Spread}, {certificate.Pool, certificate.Period, certificate.Spread}} {
						for _, f := range pair {
							relax.Without[f] = true
						}
						b, _ := of()
						clear(relax.Without)
						fmt.Printf("  %v %s steady=%v %q without %v: %.6g  %.3f %%\n", asked, how, steady, devices, strings.ReplaceAll(fmt.Sprint(pair), " ", "+"), b, 100*(1-b/all))
					}
				}
				for _, f := range slices.Sorted(maps.Keys(used)) {
					if f == certificate.Assign || f == certificate.Area || f == certificate.Given {
						continue
					}
					relax.Without[f] = true
					b, _ := of()
					delete(relax.Without, f)
					fmt.Printf("  %v %s steady=%v %q without %s: %.6g  %.3f %%\n", asked, how, steady, devices, f, b, 100*(1-b/all))
				}
			}
			families("one", func() []*certificate.Proof {
				return []*certificate.Proof{must.Get(relax.Bound(t.Context(), m, value))(t)}
			})
			if len(m.Tasks) < 150 && strings.Contains(devices, ",") || len(m.Tasks) < 150 && devices == "" {
				families("parts", func() []*certificate.Proof { return must.Get(relax.Branch(t.Context(), m, value, 25))(t).Proofs })
			}
		}
	}
}
