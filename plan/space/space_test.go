package space

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dahl/dag"
	"dahl/must"
	"dahl/platform"
)

func load(t *testing.T, name string) *platform.Platform {
	t.Helper()
	return must.Get(platform.LoadWith("../../platforms/"+name+".toml", func(name string) ([]byte, error) { return os.ReadFile("../../platforms/" + name + ".toml") }))(t)
}

// A manycore of 64 cores has a set for each of the nine counts, and all; the emulated machine none, one or
// two cores with and without its GPU, less the empty set.
func TestSetsOfOneAndTwoDevices(t *testing.T) {
	for name, want := range map[string][]string{
		"manycore": {"cpu:1", "cpu:2", "cpu:4", "cpu:8", "cpu:12", "cpu:16", "cpu:24", "cpu:36", "cpu:40", ""},
		"emulated": {"gpu", "cpu:1", "cpu:1,gpu", "cpu:2", ""},
	} {
		if got := Sets(load(t, name), nil); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Two GPUs behind one uplink are exchangeable, and those of two sockets are not, since only one socket is
// at the host's memory: 1+3·8 numbers of cores (none; one of seven counts below 36, or 36, of one socket, the
// other or both) times 3·3 numbers of GPUs, less the empty set.
func TestEqualDevicesCountAsOne(t *testing.T) {
	p := load(t, "server")
	sets := Sets(p, nil)
	if want := 25*3*3 - 1; len(sets) != want {
		t.Errorf("%d sets, want %d", len(sets), want)
	}
	if slices.Contains(sets, "gpu1") || !slices.Contains(sets, "gpu0") || !slices.Contains(sets, "gpu2") {
		t.Error("gpu1 stands for what gpu0 stands for")
	}
	// A graph that names gpu1 makes it another: it is in sets without gpu0 too. 25·4·3−1 = 299.
	g := &dag.Graph{Tasks: []dag.Task{{Costs: []dag.Cost{{Key: "gpu1@slow", Ns: 5}}}}}
	if sets, want := Sets(p, g), 25*4*3-1; len(sets) != want || !slices.Contains(sets, "gpu1") {
		t.Errorf("%d sets of a graph that names gpu1, want %d", len(sets), want)
	}
}

// A slower link to one of two GPUs makes them unlike.
func TestALinkMakesDevicesUnlike(t *testing.T) {
	p := load(t, "server")
	id := slices.IndexFunc(p.Links, func(l platform.Link) bool { return l.Name == "pcie1" })
	q := *p
	q.Links = slices.Clone(p.Links)
	q.Links[id].BandwidthBytesPerSec /= 2
	must.Do(t, q.Complete())
	if !slices.Contains(Sets(&q, nil), "gpu1") {
		t.Error("gpu1 behind a slower link is left out")
	}
}

// Of eight nodes with a processor and four GPUs each: 1, 2, 4 and all, by GPUs, by processors and by both.
func TestSetsOfNodes(t *testing.T) {
	want := []string{"n0.cpu:64", "n0.gpu0,n0.gpu1,n0.gpu2,n0.gpu3", "n0.cpu:64,n0.gpu0…gpu3", "n0.cpu:64,n1.cpu:64", "n0…n1.gpu0…gpu3", "n0…n1.cpu:64,n0…n1.gpu0…gpu3",
		"n0.cpu:64,n1.cpu:64,n2.cpu:64,n3.cpu:64", "n0…n3.gpu0…gpu3", "n0…n3.cpu:64,n0…n3.gpu0…gpu3", "n0…n7.cpu:64", "n0…n7.gpu0…gpu3", ""}
	if got := Sets(load(t, "star"), nil); !slices.Equal(got, want) {
		t.Errorf("sets %q, want %q", got, want)
	}
}

// Every set is one that the machine can select, and all are different.
func TestSetsCanBeSelected(t *testing.T) {
	files, err := filepath.Glob("../../platforms/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".toml")
		p := load(t, name)
		seen := map[string]bool{}
		for _, set := range Sets(p, nil) {
			if seen[set] {
				t.Errorf("%s: %q twice", name, set)
			}
			seen[set] = true
			if _, err := p.Select(set); set != "" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !seen[""] {
			t.Errorf("%s: not all devices", name)
		}
	}
}

// One unit of a device that has more is named with its number, since the name alone stands for all of them.
func TestOneUnitOfSeveral(t *testing.T) {
	p := must.Get(load(t, "emulated").Select("cpu:1,gpu"))(t)
	if got, want := Sets(p, nil), []string{"gpu", "cpu:1", ""}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
