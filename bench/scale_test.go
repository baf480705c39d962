package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dahl/dag"
	"dahl/must"
	"dahl/nn/models"
	"dahl/plan/strategy"
	"dahl/platform"
	"dahl/schedule"
	"dahl/schedule/policy"
	"dahl/simulate"
	"dahl/train"
)

// fatTree is nodes of equal GPUs, each of which has an adaptor of its own. At most five nodes share a leaf, and as many wires lead up from each leaf
// as down. A message takes 5 us within a node and 9 us to another leaf.
func fatTree(tb testing.TB, nodes, each int) *platform.Platform {
	tb.Helper()
	leaves := (nodes + 4) / 5
	for nodes%leaves > 0 {
		leaves++
	}
	return clusterOf(tb, nodes, each, fmt.Sprintf(`[[switch]]
name = "leaf"
count = %d
[[switch]]
name = "spine"
count = 5
[[link]]
name = "up"
from = "leaf"
to = "spine"
joins = "each"
bandwidth = "%d GB/s"
latency = "2.5 us"
sharing = "duplex"
`, leaves, 25*each))
}

// oneLeaf is such nodes at one leaf, where messages between different pairs of GPUs share nothing.
func oneLeaf(tb testing.TB, nodes, each int) *platform.Platform {
	tb.Helper()
	return clusterOf(tb, nodes, each, "[[switch]]\nname = \"leaf\"\n")
}

// clusterOf is nodes of equal GPUs at the leaves of a network.
func clusterOf(tb testing.TB, nodes, each int, network string) *platform.Platform {
	tb.Helper()
	dir := tb.TempDir()
	node, wires := &strings.Builder{}, &strings.Builder{}
	fmt.Fprint(node, `name = "node"
[[memory]]
name = "ram"
bandwidth = "200 GB/s"
[[device]]
name = "cpu"
kind = "cpu"
count = 1
memory = "ram"
speed = { float32 = "50 GF/s" }
[[link]]
name = "pcie"
bandwidth = "25 GB/s"
latency = "2.5 us"
sharing = "duplex"
`)
	for i := range each {
		fmt.Fprintf(node, `[[memory]]
name = "hbm%[1]d"
capacity = "80 GB"
bandwidth = "2000 GB/s"
[[device]]
name = "gpu%[1]d"
kind = "cuda"
count = 1
memory = "hbm%[1]d"
speed = { float32 = "20 TF/s" }
dispatch = "2 us"
copy_engines = { in = 1, out = 1 }
[[link]]
name = "out%[1]d"
bandwidth = "250 GB/s"
latency = "2.5 us"
[[link]]
name = "in%[1]d"
bandwidth = "250 GB/s"
latency = "2.5 us"
[[route]]
from = "ram"
to = "hbm%[1]d"
links = ["pcie"]
`, i)
		for k := range i {
			for _, pair := range [][2]int{{i, k}, {k, i}} {
				fmt.Fprintf(node, "[[route]]\nfrom = \"hbm%[1]d\"\nto = \"hbm%[2]d\"\nlinks = [\"out%[1]d\", \"in%[2]d\"]\noneway = true\n", pair[0], pair[1])
			}
		}
		fmt.Fprintf(wires, "[[link]]\nname = \"adaptor%d\"\nfrom = \"n.hbm%d\"\nto = \"leaf\"\nbandwidth = \"25 GB/s\"\nlatency = \"2 us\"\nsharing = \"duplex\"\n", i, i)
	}
	cluster := fmt.Sprintf(`name = "cluster"
[[node]]
name = "n"
platform = "node.toml"
count = %d
`, nodes) + network + wires.String()
	must.Do(tb, os.WriteFile(filepath.Join(dir, "node.toml"), []byte(node.String()), 0o600))
	must.Do(tb, os.WriteFile(filepath.Join(dir, "cluster.toml"), []byte(cluster), 0o600))
	return must.Get(platform.Load(filepath.Join(dir, "cluster.toml")))(tb)
}

// BenchmarkScale is the data-parallel step of resnet50 on many GPUs, from the network to the schedule.
func BenchmarkScale(b *testing.B) {
	for _, n := range []int{40, 80, 200, 400, 1000} {
		b.Run(fmt.Sprintf("resnet50/%d", n), func(b *testing.B) {
			p := fatTree(b, n/8, 8)
			m := must.Get(models.ByName("resnet50"))(b)
			var lower, price, decide, run time.Duration
			tasks, copies := 0, 0
			for b.Loop() {
				w := &train.Workload{Samples: train.Samples{Train: 8 * n}, Model: m, Platform: p,
					Options: train.Options{OtherMachine: true, Batch: 8 * n, Type: dag.Float32, Strategy: must.Get(strategy.ByName(fmt.Sprintf("data-parallel:%d", n)))(b)}}
				begin := time.Now()
				must.Do(b, w.Lower())
				lowered := time.Now()
				priced := must.Get(schedule.Price(w.Program, p, w.Target()))(b)
				pricedAt := time.Now()
				d := must.Get(priced.Decide(schedule.Choice{Policy: policy.HEFT}))(b)
				decided := time.Now()
				s := must.Get(simulate.Run(context.Background(), d, 0, 1, simulate.Options{}))(b)
				lower, price, decide, run = lower+lowered.Sub(begin), price+pricedAt.Sub(lowered), decide+decided.Sub(pricedAt), run+time.Since(decided)
				tasks, copies = len(s.Spans), len(s.Transfers)
				b.ReportMetric(s.Makespan.Seconds(), "makespan-s")
			}
			for name, all := range map[string]time.Duration{"lower-s": lower, "price-s": price, "decide-s": decide, "simulate-s": run} {
				b.ReportMetric(all.Seconds()/float64(b.N), name)
			}
			b.ReportMetric(float64(tasks), "tasks")
			b.ReportMetric(float64(copies), "copies")
		})
	}
}
