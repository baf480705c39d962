package platform

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/must"
	"dahl/platform/fit"
)

// zeusDir is the variable that names a directory with all traces of Zeus. Without it an excerpt of
// them is used.
const zeusDir = "DAHL_ZEUS"

// limited is what was measured at one power limit.
type limited struct{ limit, seconds, watts float64 }

func (m limited) joules() float64 { return m.seconds * m.watts }

// readLimited reads the measurements of each network, by rising power limit.
func readLimited(t *testing.T, path string) [][]limited {
	t.Helper()
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	lines := must.Get(csv.NewReader(file).ReadAll())(t)
	const named = 4 // dataset, network, batch and optimizer
	var networks [][]limited
	index := map[string]int{}
	for _, line := range lines[1:] {
		var values [3]float64
		for i := range values {
			values[i] = must.Get(strconv.ParseFloat(line[named+i], 64))(t)
		}
		name := strings.Join(line[:named], ",")
		at, ok := index[name]
		if !ok {
			at = len(networks)
			index[name], networks = at, append(networks, nil)
		}
		networks[at] = append(networks[at], limited{values[0], values[1], values[2]})
	}
	for _, rows := range networks {
		slices.SortFunc(rows, func(a, b limited) int { return int(a.limit - b.limit) })
	}
	return networks
}

// powerLaw says at which clock a GPU draws some watts: above the idle ones they grow with a power
// of the clock, up to its highest one.
type powerLaw struct{ idle, top, exponent float64 }

func (l powerLaw) scale(watts float64) float64 {
	const least = 1e-3 // where the watts are those of the idle device
	return math.Pow(min(1, max(least, (watts-l.idle)/(l.top-l.idle))), 1/l.exponent)
}

// fitLimited finds the law, and the memory part and compute part of the time at the highest
// clock, with the least sum of squared relative errors of the seconds.
func fitLimited(rows []limited) (best powerLaw, memory, compute float64) {
	least := slices.MinFunc(rows, func(a, b limited) int { return int(math.Copysign(1, a.watts-b.watts)) }).watts
	sum := math.Inf(1)
	for _, top := range rows[2:] {
		for exponent := range 3 {
			for share := range 49 {
				law := powerLaw{float64(share) / 50 * least, top.watts, float64(1 + exponent)}
				scaled := make([][3]float64, len(rows))
				for i, r := range rows {
					scaled[i] = [3]float64{1 / r.seconds, 1 / (law.scale(r.watts) * r.seconds)}
				}
				if x, ok := fit.Minimise(scaled); ok && squares(scaled, x) < sum {
					sum, best, memory, compute = squares(scaled, x), law, x[0], x[1]
				}
			}
		}
	}
	return best, memory, compute
}

// drawnAt finds what a network draws at a limit by what it draws at others: a line in the limit,
// up to what it draws without one. It has the least sum of squared relative errors.
func drawnAt(limit float64, rows []limited) (watts float64) {
	least := math.Inf(1)
	for n := 2; n <= len(rows); n++ { // so many limits bind
		under, above := make([][3]float64, n), make([][3]float64, len(rows)-n)
		for i, r := range rows[:n] {
			under[i] = [3]float64{1 / r.watts, r.limit / r.watts}
		}
		for i, r := range rows[n:] {
			above[i] = [3]float64{1 / r.watts}
		}
		line, ok := fit.Minimise(under)
		most := math.Inf(1)
		if free, found := fit.Minimise(above); found {
			most = free[0]
		}
		at := func(limit float64) float64 { return min(line[0]+float64(line[1]*limit), most) }
		sum := 0.0
		for _, r := range rows {
			sum += math.Pow(at(r.limit)/r.watts-1, 2)
		}
		if ok && sum < least {
			least, watts = sum, at(limit)
		}
	}
	return watts
}

// predictLimited is the row of a power limit by a device whose clocks were fitted to others.
func predictLimited(t *testing.T, others []limited, limit float64) limited {
	t.Helper()
	law, memory, compute := fitLimited(others)
	watts := drawnAt(limit, others)
	const clock = "limited"
	busy := func(watts float64) BusyPower { return BusyPower{UnitWatts: watts} }
	p := &Platform{Memories: []Memory{{Name: "vram"}},
		Devices: []Device{{Name: "gpu", Kind: CUDA, Count: 1, Busy: busy(law.top), PowerSource: Measured,
			Clocks: []Clock{{Name: "boost", Scale: 1, Busy: busy(law.top)}, {Name: clock, Scale: law.scale(watts), Busy: busy(watts)}}}},
		Models: []Model{{Op: "epoch", Type: "float32", Device: "gpu", Shape: "all", Active: 1, MedianNs: 1e9 * (memory + compute), Compute: max(1e-12, compute/(memory+compute))}}}
	must.Do(t, p.Complete())
	p = must.Get(p.WithClock("gpu", clock))(t)
	e, ok := p.Estimate(Query{Op: "epoch", Type: "float32", Shape: "all"})
	if !ok {
		t.Fatal("no estimate")
	}
	return limited{limit, e.Duration.Seconds(), p.Devices[0].Watts(p.Devices[0].AtClock, 1)}
}

// between is the value at a limit on the line through those of two others.
func between(before, after limited, limit, low, high float64) float64 {
	return low + (high-low)*(limit-before.limit)/(after.limit-before.limit)
}

// misses are the errors of one way to predict, relative to what was measured.
type misses struct{ seconds, joules []float64 }

func (e *misses) add(seconds, joules float64, measured limited) {
	e.seconds = append(e.seconds, math.Abs(seconds/measured.seconds-1))
	e.joules = append(e.joules, math.Abs(joules/measured.joules()-1))
}

// leaveOut predicts each inner row of each network from the others: by a device, and by the
// line between the neighbours. A network has at least six limits, so that five are left, with ten
// measurements, for the eight numbers of the two fits.
func leaveOut(t *testing.T, networks [][]limited) (used int, device, line misses) {
	t.Helper()
	for _, rows := range networks {
		if len(rows) < 6 {
			continue
		}
		used++
		for i := 1; i+1 < len(rows); i++ {
			left, a, b := rows[i], rows[i-1], rows[i+1]
			got := predictLimited(t, slices.Concat(rows[:i], rows[i+1:]), left.limit)
			device.add(got.seconds, got.joules(), left)
			line.add(between(a, b, left.limit, a.seconds, b.seconds), between(a, b, left.limit, a.joules(), b.joules()), left)
		}
	}
	return used, device, line
}

// against is a row of the table, and whether the device is no worse than the line in the median.
func against(device, line []float64) (row string, noWorse bool) {
	medianAndWorst := func(errs []float64) (median, worst float64) {
		sorted := slices.Sorted(slices.Values(errs))
		return sorted[len(sorted)/2], sorted[len(sorted)-1]
	}
	median, worst := medianAndWorst(device)
	lineMedian, lineWorst := medianAndWorst(line)
	nearer := 0
	for i := range device {
		if device[i] < line[i] {
			nearer++
		}
	}
	return fmt.Sprintf("%d | %.2f | %.1f | %.2f | %.1f | %d", len(device), 100*median, 100*worst, 100*lineMedian, 100*lineWorst, nearer), median <= lineMedian
}

// TestZeus leaves out each inner power limit of each network in turn. A device with clocks that is
// fitted to the other limits of the network has to predict its seconds and joules, in the median
// of all rows of a GPU, no worse than the line between the neighbours does. The excerpt, a
// network for each of two GPUs, is judged as a whole.
func TestZeus(t *testing.T) {
	dir := os.Getenv(zeusDir)
	excerpt := dir == ""
	if excerpt {
		dir = filepath.Join("testdata", "zeus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "summary_power_*.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no summary_power_*.csv in %s (%v)", dir, err)
	}
	var table strings.Builder
	var allDevice, allLine misses
	networks := 0
	tell := func(gpu string, networks int, device, line misses, judged bool) {
		for _, of := range []struct {
			what         string
			device, line []float64
		}{{"seconds", device.seconds, line.seconds}, {"joules", device.joules, line.joules}} {
			row, noWorse := against(of.device, of.line)
			fmt.Fprintf(&table, "| %s | %d | %s | %s |\n", gpu, networks, of.what, row)
			if judged && !noWorse {
				t.Errorf("%s, %s: the line between the neighbours is nearer: %s", gpu, of.what, row)
			}
		}
	}
	for _, file := range files {
		n, device, line := leaveOut(t, readLimited(t, file))
		tell(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "summary_power_"), ".csv"), n, device, line, !excerpt)
		networks += n
		allDevice = misses{slices.Concat(allDevice.seconds, device.seconds), slices.Concat(allDevice.joules, device.joules)}
		allLine = misses{slices.Concat(allLine.seconds, line.seconds), slices.Concat(allLine.joules, line.joules)}
	}
	tell("all", networks, allDevice, allLine, true)
	t.Log("\n" + table.String())
}

// squares is the sum of the squared residuals of a fit.
func squares(rows [][3]float64, x [3]float64) (sum float64) {
	for _, r := range rows {
		d := r[0]*x[0] + r[1]*x[1] + r[2]*x[2] - 1
		sum += d * d
	}
	return sum
}
