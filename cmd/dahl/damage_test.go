package main

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
	"dahl/train"
)

// damagedTraining is of 5 epochs of 4 steps, saved after every third.
const damagedTraining = "execute --model tiny.toml --data digits --limit 12 --batch 3 --workers 1 --seed 5 --checkpoint every=3steps --epochs 5 "

// saved are the files of an interrupted training by name, as they were kept.
type saved map[string][]byte

// savedTraining cuts a training, which is to be called cut, after step 12 of 20.
func savedTraining(t *testing.T) saved {
	t.Helper()
	writeTestFile(t, "tiny.toml", tinyNetwork)
	cutAfter(t, "12", append(strings.Fields(damagedTraining), "--out", "cut")...)
	files := saved{}
	for _, name := range []string{rundir.ManifestName, record.StepsFile, record.EpochsFile, "checkpoints/12", "checkpoints/9", "checkpoints/6"} {
		data := must.Get(os.ReadFile(filepath.Join("cut", ".staging", name)))(t)
		files[name] = data
	}
	return files
}

// restore puts the training back, with other contents of one file.
func (s saved) restore(t *testing.T, name string, with []byte) {
	t.Helper()
	must.Do(t, os.RemoveAll("cut"))
	for file, data := range s {
		if file == name {
			data = with
		}
		writeTestFile(t, filepath.Join("cut", ".staging", file), string(data))
	}
}

// TestDamagedTraining damages files of an interrupted training 600 times at random. Each time it is
// refused, or goes on from a checkpoint with the bytes that were kept, with the rows of before and with the options
// that it had. What follows from these is the same then, which every hundredth shows by going on to the end.
func TestDamagedTraining(t *testing.T) {
	t.Chdir(t.TempDir())
	files := savedTraining(t)
	mustRun(t, append(strings.Fields(damagedTraining), "--out", "whole")...)
	began := loaded(t)
	if began == nil {
		t.Fatal("the training does not go on")
	}
	whole := manifestOf(t, "whole").WeightsHash
	r, taken, refused, cases := rand.New(rand.NewPCG(30, 2)), 0, 0, 600
	if testing.Short() {
		cases = 120
	}
	names := slices.Sorted(maps.Keys(files))
	for n := range cases {
		name := names[r.IntN(len(names))]
		damage, how := mutate(r, files[name])
		staged := filepath.Join("cut", ".staging", name)
		writeTestFile(t, staged, string(damage))
		in := loaded(t)
		writeTestFile(t, staged, string(files[name]))
		if in == nil {
			refused++
			continue
		}
		taken++
		after := in.progress.Steps
		var kept bytes.Buffer
		if err := in.checkpoint.Encode(&kept); err != nil || !bytes.Equal(kept.Bytes(), files["checkpoints/"+strconv.Itoa(after)]) {
			t.Errorf("%d, %s, %s: the state after step %d is another (%v)", n, name, how, after, err)
		}
		if !slices.Equal(in.steps, began.steps[:after]) || !slices.Equal(in.epochs, began.epochs[:(after-1)/4]) { // after the last step of an epoch comes its test
			t.Errorf("%d, %s, %s: the tables until step %d are\n%v\n%v", n, name, how, after, in.steps, in.epochs)
		}
		if !reflect.DeepEqual(in.manifest, began.manifest) {
			t.Errorf("%d, %s, %s: the manifest is another", n, name, how)
		}
		if n%100 != 0 {
			continue
		}
		files.restore(t, name, damage)
		mustRun(t, "execute", "--resume", "cut")
		if hash := manifestOf(t, "cut").WeightsHash; hash != whole {
			t.Errorf("%d, %s, %s: the weights are %.12s, want %.12s", n, name, how, hash, whole)
		}
		sameFiles(t, record.StepsFile, "cut", "whole")
		files.restore(t, "", nil)
	}
	if taken < cases/6 || refused < cases/12 { // half are of checkpoints, of which two are left; a sixth is of the manifest
		t.Errorf("%d were taken and %d refused", taken, refused)
	}
}

// loaded is the interrupted training as it would go on; nil: it is refused, in one line.
func loaded(t *testing.T) *interrupted {
	t.Helper()
	cmd := newExecute(nil)
	must.Do(t, cmd.ParseFlags([]string{"--resume", "cut"}))
	in, err := openInterrupted(cmd, "cut", new(flags.Options))
	if err != nil {
		if text := err.Error(); !errors.As(err, new(train.InputError)) || strings.Contains(text, "\n") || !strings.Contains(text, "cut") {
			t.Errorf("it is refused by %q", text)
		}
		return nil
	}
	must.Do(t, in.dir.Close())
	return in
}

// TestResumeRefusesAnother: a checkpoint goes on with no other training, though its manifest is sealed; with no other
// initial weights, which the manifest of the whole would name; and a finished run with no other tables.
func TestResumeRefusesAnother(t *testing.T) {
	t.Chdir(t.TempDir())
	files := savedTraining(t)
	other := strings.Replace(damagedTraining, "--seed 5", "--seed 7", 1)
	must.Do(t, os.RemoveAll("cut"))
	cutAfter(t, "12", append(strings.Fields(other), "--out", "cut")...)
	forged := must.Get(os.ReadFile(filepath.Join("cut", ".staging", rundir.ManifestName)))(t)
	files.restore(t, rundir.ManifestName, forged)
	wantRefused(t, "execute --resume cut", "cut cannot go on: the checkpoint was made with seed 5, and this training is with seed 7")

	mustRun(t, strings.Fields("execute --model tiny.toml --data digits --limit 12 --out run --save w.npz")...)
	must.Do(t, os.RemoveAll("cut"))
	cutAfter(t, "12", append(strings.Fields(damagedTraining), "--init", "w.npz", "--out", "cut")...)
	mustRun(t, strings.Fields("execute --model tiny.toml --data digits --limit 12 --epochs 2 --out run --save w.npz")...)
	wantRefused(t, "execute --resume cut", "cut cannot go on: w.npz has changed since the training began")

	change(t, filepath.Join("run", record.StepsFile), 9)
	wantRefused(t, "execute --resume run --epochs 3", "damaged: "+filepath.Join("run", record.StepsFile)+": its hash is")
}

// change flips a bit of a byte of a file.
func change(t *testing.T, path string, at int) {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	data[at] ^= 1
	writeTestFile(t, path, string(data))
}

// TestDamagedManifest: each command that reads a run refuses one whose manifest is not as it was sealed.
func TestDamagedManifest(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	mustRun(t, strings.Fields(tinyTraining+"--out run")...)
	mustRun(t, strings.Fields(tinyTraining+"--out whole")...)
	data := must.Get(os.ReadFile("run/" + rundir.ManifestName))(t)
	at := bytes.Index(data, []byte(`"seed": 1`))
	change(t, "run/"+rundir.ManifestName, at+len(`"seed": `))
	want := "damaged: " + filepath.Join("run", rundir.ManifestName) + " is not as dahl sealed it (its hash is another): take the run from a copy, or remove it and repeat it"
	for _, line := range []string{"verify run", "report run", "report whole run", "compare run", "compare whole run", "plot run", "trace run", "kernels run", "rerun run",
		"execute --resume run --epochs 2", tinyTraining + "--out run"} {
		wantRefused(t, line, want)
	}
}

// TestRecipeHasEveryOption sets each option in turn: the recipe is another one, unless a training that goes on
// may be given it.
func TestRecipeHasEveryOption(t *testing.T) {
	base := (&record.Manifest{}).Recipe()
	left := record.Undecided()
	of := reflect.TypeFor[flags.Options]()
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		if key == "" {
			t.Errorf("%s is in no manifest", of.Field(i).Name)
		}
		m := &record.Manifest{}
		v := reflect.ValueOf(&m.Options).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Uint64:
			v.SetUint(7)
		case reflect.Float64:
			v.SetFloat(7)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			t.Fatalf("%s is of a kind that this test does not know", key)
		}
		if at := slices.Index(left, key); at >= 0 {
			left = slices.Delete(left, at, at+1)
			if what := base.Difference(m.Recipe()); what != "" {
				t.Errorf("%s: %s", key, what)
			}
		} else if what := base.Difference(m.Recipe()); !strings.Contains(what, key) {
			t.Errorf("another %s gives the same recipe (%q)", key, what)
		}
	}
	left = slices.DeleteFunc(left, func(key string) bool {
		return slices.Contains([]string{"clock", "resume", "set_clocks", "ignore_clocks", "save", "json"}, key) // which are no options, or under another name
	})
	if len(left) > 0 {
		t.Errorf("no options: %v", left)
	}
	for what, m := range map[string]*record.Manifest{
		"data":  {Data: &cli.Identity{Name: "d", SHA256: "1"}},
		"model": {Options: flags.Options{Model: "m"}, Inputs: []cli.Identity{{Name: "m", SHA256: "1"}}},
		"init":  {Options: flags.Options{Init: "m"}, Inputs: []cli.Identity{{Name: "m", SHA256: "1"}}},
	} {
		was := m.Recipe()
		if what == "data" {
			m.Data = &cli.Identity{Name: "d", SHA256: "2"}
		} else {
			m.Inputs = []cli.Identity{{Name: "m", SHA256: "2"}}
		}
		if said := was.Difference(m.Recipe()); !strings.Contains(said, " has changed since the training began") {
			t.Errorf("%s: %q", what, said)
		}
	}
}

// TestRecipeHasLastBits gives each flag that a training which goes on may be given: where the weights differ, the
// recipe says so.
func TestRecipeHasLastBits(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "small.toml", smallNetwork)
	writeTestFile(t, "node.toml", emulatedNode)
	writeTestFile(t, "tiles.toml", "[layer.conv1]\nsamples = 1\n[layer.fc1]\nsamples = 1\n")
	trained := func(flags ...string) (record.Recipe, string) {
		t.Helper()
		mustRun(t, append(strings.Fields("execute --model small.toml --data digits --limit 64 --batch 32 --out run"), flags...)...)
		m := manifestOf(t, "run")
		return m.Recipe(), m.WeightsHash
	}
	base, hash := trained()
	plan := must.Get(os.ReadFile("run/" + rundir.PlanFile))(t)
	writeTestFile(t, "plan.json", string(plan))
	values := map[string]string{
		"platform": "node.toml", "devices": "cpu:1", "workers": "1", "policy": "eager", "plan": "plan.json", "lowering": "tiles.toml", "variant": "ref", "precision": "bf16",
		"record": "1", "checkpoint": "every=1steps", "continue-on-loss": "1", "continue-on-nan": "true", "ignore-clocks": "true", "save": "w.npz", "json": "true",
		"epochs": "", "resume": "", "clock": "", "set-clocks": "", // the first two are how long it is; the others need clocks, which no weight depends on
	}
	differ := 0
	for _, flag := range record.ResumeFlags {
		value, known := values[flag]
		if !known {
			t.Errorf("--%s has no value here", flag)
		}
		if value == "" {
			continue
		}
		now, weights := trained("--" + flag + "=" + value)
		if what := base.Difference(now); what != "" {
			t.Errorf("--%s: %s", flag, what)
		}
		if weights != hash {
			differ++
			if now.Graphs == base.Graphs && now.Variants == base.Variants {
				t.Errorf("--%s changes weights, and neither graphs nor variants", flag)
			}
		}
	}
	if differ < 2 { // other tiles and other variants add in another order
		t.Errorf("%d flags change weights", differ)
	}
}
