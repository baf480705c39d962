package clocks

import (
	"fmt"
	"testing"
	"time"

	"dahl/must"
	"dahl/plan/problem"
)

// limited is what Zeus measured of ResNet-50 on a V100 at seven power limits: seconds of an epoch, and watts.
var limited = [][2]float64{{6781.17, 98.38}, {5064.97, 121.97}, {4148.66, 144.59}, {3852.18, 166.37}, {3700.97, 184.94}, {3584.30, 205.44}, {3514.99, 220.25}}

// pipeline is a step of a pipeline of unlike stages, one forward, one backward. Waiting stages draw 70 W.
func pipeline(stages, microBatches int32) *Graph {
	const idle = 70
	g := &Graph{Watts: float64(idle * stages)}
	id := func(stage, batch, backward int32) int32 { return 2*(stage*microBatches+batch) + backward }
	for stage := range stages {
		for range microBatches {
			for backward := range 2 {
				share := float64(1+backward) / 3 * (1 + 0.07*float64(stage*5%4)) / 5005
				var task Task
				for clock, at := range limited {
					task.Options = append(task.Options, Option{Nanos: int64(1e9 * at[0] * share), Joules: at[0] * share * (at[1] - idle), Clock: clock})
				}
				g.Tasks = append(g.Tasks, task)
			}
		}
	}
	for stage := range stages {
		warm, last := min(microBatches, stages-stage), int32(-1)
		follow := func(t int32) {
			if last >= 0 {
				g.Waits = append(g.Waits, Wait{From: last, To: t})
			}
			last = t
		}
		for batch := range microBatches + warm {
			if back := batch - warm; back >= 0 {
				follow(id(stage, back, 1))
			}
			if batch < microBatches {
				follow(id(stage, batch, 0))
			}
			if batch < microBatches && stage > 0 {
				g.Waits = append(g.Waits, Wait{From: id(stage-1, batch, 0), To: id(stage, batch, 0)}, Wait{From: id(stage, batch, 1), To: id(stage-1, batch, 1)})
			}
		}
	}
	g.Step()
	return g
}

// Clocks of a pipeline by a deadline of 1.1 times its shortest step, and how far they may be above the best.
func BenchmarkPipeline(b *testing.B) {
	for _, size := range [][2]int32{{8, 16}, {8, 64}, {16, 64}} {
		for _, tries := range []int{0, 10_000} {
			b.Run(fmt.Sprintf("%dx%d/%d-tries", size[0], size[1], tries), func(b *testing.B) {
				for b.Loop() {
					c := must.Get(New(pipeline(size[0], size[1])))(b)
					aim := problem.Aim{Objective: problem.Energy, Deadline: time.Duration(1.1 * float64(c.fastest))}
					is := must.Get(c.Choose(b.Context(), aim, tries))(b)
					b.ReportMetric(100*(is.Joules/is.Bound-1), "%gap")
				}
			})
		}
	}
}
