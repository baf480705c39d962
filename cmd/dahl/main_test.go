package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/record"
	"dahl/must"
	"dahl/rundir"
)

// result is what one command line came to.
type result struct {
	code           int
	stdout, stderr string
}

// dahl runs one command line in the current directory.
func dahl(t *testing.T, ctx context.Context, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, newRoot(args), args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// failure is what stderr says without warnings, as of workers that share a core where there
// are fewer cores than a test wants.
func (r result) failure() string {
	var b strings.Builder
	for line := range strings.Lines(r.stderr) {
		if !strings.HasPrefix(line, "level=WARN ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// mustRun runs a command line that has to succeed and returns what it printed.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	r := dahl(t, t.Context(), args...)
	if r.code != cli.ExitOK {
		t.Fatalf("dahl %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// smallNetwork is a model file for the built-in digits with few calls to calibrate.
const smallNetwork = `
name = "small"
input = [1, 8, 8]
[[layer]]
kind = "conv2d"
filters = 3
kernel = 3
[[layer]]
kind = "flatten"
[[layer]]
kind = "dense"
outputs = 10
`

// writeTestFile writes one file into the current directory.
func writeTestFile(t *testing.T, name, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o777))
	must.Do(t, os.WriteFile(name, []byte(text), 0o666))
}

// listing names every file and directory below the current one.
func listing(t *testing.T) string {
	t.Helper()
	var names []string
	must.Do(t, filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	}))
	return strings.Join(names, "\n")
}

func TestHelp(t *testing.T) {
	for _, sub := range cli.Commands(newRoot(nil)) {
		name := cli.Words(sub)
		out := mustRun(t, append(strings.Fields(name), "--help")...)
		if !strings.Contains(out, strings.TrimSpace("Usage:\n  dahl "+name)) {
			t.Errorf("dahl %s --help does not show its usage:\n%s", name, out)
		}
		if sub.Short == "" || sub.Long == "" {
			t.Errorf("dahl %s has no description", name)
		}
	}
}

// badInputs are command lines that cannot be carried out. want is part of the
// message: what is wrong, in the user's terms.
var badInputs = []struct{ line, want string }{
	{"nope", `there is no command "nope"; see dahl --help`},
	{"simulat --model mlp", "did you mean simulate"},
	{"simulate --nope", "there is no flag --nope; see dahl simulate --help"},
	{"simulate extra", "extra"},
	{"help nope", `there is no command "nope"`},
	{"help simulat", "did you mean simulate"},
	{"help experiment rnu", `dahl experiment has no command "rnu"; did you mean run`},
	{"simulate --modle mlp", "there is no flag --modle; did you mean --model; see"},
	{"execute -batch 3", "there is no flag -batch; did you mean --batch; see"},
	{"execute -x", "there is no flag -x; see"},
	{"execute --batch", "--batch has no value; write --batch SAMPLES: samples per training step"},
	{"calibrate --batch 3,x", `--batch "3,x": "x" is no integer`},
	{"verify a b", "2 arguments are given"},
	{"completion", "completion wants the name of a shell"},
	{"completion bsh", `shell "bsh" is not one of bash, fish, powershell, zsh; did you mean bash`},
	{"man", "name a directory with --out"},
	{"man --out seven.toml/pages", "seven.toml"},
	{"simulate --platform laptop --model mlp --dtype float23", "did you mean float32"},
	{"simulate --platform laptop --model mlp --loss mze", "did you mean mse"},
	{"simulate --platform laptop --model mlp --optimizer adm", "did you mean adam"},
	{"simulate --platform laptop --model mlp --schedule cosin,over=3epochs", "did you mean cosine"},
	{"simulate --platform laptop --model mlp --data digit", "did you mean digits"},
	{"simulate --platform laptop --model mlp --variant avx22", "did you mean avx2"},
	{"simulate --platform laptop --model mlp --lowering bst", "--lowering bst: no such file; write a TOML file or default"},
	{"simulate --platform server --model mlp --devices gpu9", "did you mean gpu"},
	{"simulate --platform emulated --model mlp --clock gpuu=slow", "did you mean gpu"},
	{"plan --platform laptop --model mlp --objective enery", "did you mean energy"},
	{"trace x --format crome", "did you mean chrome"},
	{"plot x --format pgn", "did you mean png"},
	{"simulate --platform key.toml --model mlp", `key.toml:1: nam: unknown key; known are`},
	{"simulate --platform laptop --graph key.json", `key.json:1: unknown key "tsks"; write format, name, recorded_on, buffers, costs or tasks; did you mean tasks`},
	{"simulate --model mlp", "--platform"},
	{"simulate --platform laptop", "--model or a task graph with --graph"},
	{"simulate --platform laptop --model mlp --graph bad.json", "exclude each other"},
	{"simulate --platform laptop --model mlp --plan bad.json --policy heft", "exclude each other"},
	{"simulate --platform laptop --model nope", `"nope"`},
	{"simulate --platform laptop --model nope.toml", "nope.toml"},
	{"simulate --platform laptop --model bad.toml", "bad.toml:"},
	{"simulate --platform nope --model mlp", "laptop"},
	{"simulate --platform bad.toml --model mlp", "bad.toml:"},
	{"simulate --platform unit.toml --model mlp", "unit.toml:"},
	{"simulate --platform laptop --graph nope.json", "nope.json"},
	{"simulate --platform laptop --graph bad.json", "bad.json:"},
	{"simulate --platform laptop --graph bad.txt", "bad.txt:"},
	{"simulate --platform laptop --model mlp --plan nope.json", "nope.json"},
	{"simulate --platform laptop --model mlp --plan bad.json", "bad.json"},
	{"simulate --platform laptop --model mlp --lowering bad.toml", "bad.toml:"},
	{"simulate --platform laptop --model mlp --lowering default --optimizer lion", "sgd, adam or adamw"},
	{"simulate --platform laptop --model mlp --lowering nope", "nope"},
	{"simulate --platform laptop --graph bad.json --lowering default", "exclude each other"},
	{"simulate --platform laptop --model mlp --policy nope", "heft"},
	{"simulate --platform laptop --model mlp --policy replay", "--policy replay: a plan is replayed with --plan; see"},
	{"simulate --platform laptop --model mlp --policy hfet", "did you mean heft; see"},
	{"simulate --platform laptop --model net.pt", "files of PyTorch cannot be read as a network; export it as .onnx, or write its layers as a .toml file"},
	{"simulate --platform laptop --model net.onnx", "net.onnx: it holds no graph; this is not an ONNX file"},
	{"execute --model src/Net.PY", "files of Python cannot be read"},
	{"execute --model w.npz", "weights are read with --init"},
	{"execute --model w.safetensors", "weights are read with --init"},
	{"simulate --platform laptop --model lenet", "did you mean lenet5"},
	{"simulate --platform serverr --model mlp", "did you mean server"},
	{"execute --platform server --model mlp", `cores of one memory are executed so far: select the devices at one, such as "cpu0"`},
	{"simulate --platform laptop --model mlp --variant nope", "ref"},
	{"simulate --platform laptop --model mlp --out foreign", "foreign"},
	{"simulate --platform laptop --model mlp --out bad.json", "bad.json"},
	{"simulate --platform laptop --model mlp --out bad.json/deeper", "bad.json"},
	{"simulate --platform laptop --model mlp --batch=-3", "--batch -3"},
	{"simulate --platform laptop --model mlp --batch 0", "--batch 0: want at least 1"},
	{"simulate --platform laptop --model mlp --batch 2001", "there are 2000 training samples in synthetic:1x28x28:2000:10"},
	{"simulate --platform laptop --model mlp --batch 32 --limit 31", "there are 31 training samples"},
	{"execute --model digits-cnn --batch 3000", "there are 2999 training samples in digits"},
	{"execute --model digits-cnn --batch 0", "--batch 0: want at least 1"},
	{"simulate --platform server --model mlp --devices gpu0 --devices gpu1", "given twice; write one list: gpu0,gpu1"},
	{"simulate --platform laptop --graph typo.json", `typo.json: task "first" has a cost for "cpuu"`},
	{"graph --platform laptop --graph typo.json", `typo.json: task "first" has a cost for "cpuu"`},
	{"simulate --platform laptop --model mlp --batch three", `--batch "three": want an integer; see`},
	{"simulate --platform laptop --model mlp --batch 99999999999999999999", "want an integer"},
	{"simulate --platform laptop --model mlp --seed=-1", "want a non-negative integer"},
	{"execute --shuffle=maybe", "want true or false"},
	{"simulate --platform laptop --model mlp --dtype int8", "float32, float64 or bfloat16"},
	{"simulate --platform laptop --model mlp --steps 0", "--steps 0"},
	{"simulate --platform laptop --model mlp --steps 99999999999", "--steps"},
	{"simulate --platform laptop --model mlp --data nope", "nope"},
	{"simulate --platform laptop --model mlp --data synthetic:1x2x3x4x5", "1x2"},
	{"simulate --platform laptop --model mlp --offset 999999", "offset"},
	{"simulate --platform laptop --model mlp --optimizer lion", "sgd, adam or adamw"},
	{"simulate --platform laptop --model mlp --optimizer adamw --momentum 0.5", "the optimiser is adamw"},
	{"execute --model mlp --loss hinge", `loss "hinge" is not one of cross_entropy, mse`},
	{"simulate --platform laptop --model mlp --loss mse --label-smoothing 0.1", "label smoothing belongs to cross_entropy; the loss is mse"},
	{"execute --model mlp --label-smoothing 1", "label smoothing 1; want at least 0 and below 1"},
	{"execute --model mlp --label-smoothing x", "--label-smoothing"},
	{"execute --model mlp --clip-norm=-1", "--clip-norm"},
	{"execute --model mlp --clip-norm inf", "--clip-norm"},
	{"execute --model mlp --schedule warm", `--schedule: schedule "warm" is not one of constant, step, multistep, cosine`},
	{"simulate --platform laptop --model mlp --schedule=,", "no schedule is given; write one of constant"},
	{"execute --model mlp --schedule cosine,min=1e-5", "over=: write a number of epochs or of steps"},
	{"execute --model mlp --schedule step,every=5", "every=5: write a number of epochs or of steps, such as every=5epochs"},
	{"execute --model mlp --schedule step,every=0epochs", "every=0epochs: write a number of epochs"},
	{"execute --model mlp --schedule step,every=5epochs,warmup=70steps", "write all periods of a schedule in epochs, or all in steps"},
	{"execute --model mlp --schedule step,every=5epochs,gamma=x", "gamma=x: write a number from 0"},
	{"execute --model mlp --schedule constant,warmup=5epochs,from=1.5", "from=1.5: write a number from 0 to 1"},
	{"execute --model mlp --schedule step,every=5epochs,every=6epochs", `"every=6epochs"; write each setting once`},
	{"execute --model mlp --schedule step,over=5epochs,every=6epochs", `no setting "over"; it has every, gamma, warmup, from`},
	{"simulate --platform laptop --model mlp --optimizer adam --momentum 0.5", "adam"},
	{"simulate --platform laptop --model mlp --lr=-1", "--lr"},
	{"simulate --platform laptop --model mlp --lr NaN", "--lr"},
	{"plan --platform laptop --model mlp --objective beauty", `"beauty": want time, energy or edp`},
	{"plan --platform laptop --model mlp --objective time --budget=-30s", "write a number of nodes or a time"},
	{"plan --platform laptop --model mlp --objective time --budget 0", "write a number of nodes or a time"},
	{"plan --platform laptop --model mlp --budget 5", "--budget bounds the search for an --objective"},
	{"plan --platform laptop --model mlp --objective time --policy dmda", "exclude each other"},
	{"plan --platform laptop --model mlp --objective time --deadline 12", "write a time above 0, such as \"12 ms\""},
	{"plan --platform laptop --model mlp --objective time --deadline=-3ms", "write a time above 0, such as \"12 ms\""},
	{"plan --platform laptop --model mlp --deadline 3ms", "--deadline is kept by the search for an --objective"},
	{"plan --platform laptop --model mlp --power-cap 400", `write "400 W"`},
	{"plan --platform laptop --model mlp --power-cap 0W", "write more than 0 W"},
	{"simulate --platform laptop --model mlp --power-cap 8W", `platform "laptop" draws 8 W while nothing runs; write more than that`},
	{"plan laptop --model mlp", `argument "laptop" belongs to no flag`},
	{"simulate --platform laptop --model mlp --devices gpu", "it has cpu (cpu, 8 units)"},
	{"simulate --platform laptop --model mlp --devices cpu:9", "write cpu:1 to cpu:8"},
	{"execute --platform laptop --model mlp --devices cpu --workers 2", "exclude each other"},
	{"execute --model digits-cnn --limit 64 --devices cpu --compare-devices", "--compare-devices"},
	{"execute", "--model"},
	{"execute --graph bad.json", "--model"},
	{"execute --model digits-cnn --epochs 0", "--epochs 0"},
	{"execute --model digits-cnn --limit=-1", "--limit -1"},
	{"execute --model digits-cnn --record=-2", "--record -2"},
	{"execute --model digits-cnn --limit 64 --platform server --workers 2", "has 2 processors"},
	{"execute --model digits-cnn --continue-on-loss=-1", "--continue-on-loss=-1"},
	{"execute --model digits-cnn --continue-on-loss 2", "--continue-on-loss=2"},
	{"execute --model digits-cnn --variant tf32", "kernels lists"},
	{"simulate --platform emulated --model mlp --variant cublas", "kernels lists"},
	{"simulate --platform emulated --model mlp --precision fp8", "want full, tf32 or bf16"},
	{"calibrate --out x.toml --precision float32", "want full, tf32 or bf16"},
	{"simulate --platform emulated --devices gpu --model cifar-cnn --batch 1024 --policy heft", "take a smaller --batch"},
	{"simulate --platform laptop --model mlp --lowering layer.toml", "lowering of layer.toml"},
	{"execute --model digits-cnn --batch=-3", "--batch -3"},
	{"execute --model digits-cnn --dtype int8", "float32, float64 or bfloat16"},
	{"execute --model digits-cnn --limit 64 --lr=-1", "--lr"},
	{"execute --model digits-cnn --limit 64 --platform server", "server"},
	{"execute --model digits-cnn --limit 64 --init nope.npz", "nope.npz"},
	{"execute --model digits-cnn --limit 64 --init bad.json", "bad.json"},
	{"execute --model digits-cnn --limit 64 --save nope/w.npz", "nope"},
	{"execute --model digits-cnn --limit 64 --save " + strings.Repeat("w", 300) + ".npz", "too long"},
	{"execute --model digits-cnn --limit 64 --save w.onxx", "want a file that ends in .npz"},
	{"execute --model digits-cnn --limit 64 --out foreign", "foreign"},
	{"execute --model lenet5 --data digits", "conv2"},
	{"calibrate", "name the file to write with --out, such as --out here.toml"},
	{"calibrate --out x.toml --model mpl", "did you mean mlp"},
	{"calibrate --out nope/x.toml", "nope"},
	{"calibrate --out x.toml --model nope", `"nope"`},
	{"calibrate --out x.toml --model mlp --lowering nope", "nope"},
	{"calibrate --out x.toml --model mlp --lowering all --dtype int8", "int8"},
	{"calibrate --out x.toml --time 0s", "--time 0s"},
	{"calibrate --out x.toml --batch 0", "--batch 0:"},
	{"calibrate --out x.toml --workers=-1", "--workers -1"},
	{"execute --model digits-cnn --workers 60000", "60000 workers are to run, and this machine has cores for at most"},
	{"calibrate --out x.toml --workers 9999", "choose them with --devices"},
	{"calibrate --out x.toml --variant nope", "avx512"},
	{"calibrate --out x.toml --sweep --dtype int8", "float32, float64 or bfloat16"},
	{"calibrate --out x.toml --sweep --lowering all", "exclude each other"},
	{"graph", "--model"},
	{"graph --model nope", `"nope"`},
	{"graph --list --model mlp", "exclude each other"},
	{"graph --model mlp --lowering best", "no such file; write a TOML file or default"},
	{"graph --model mlp --export x.pdf", ".dot"},
	{"graph --model mlp --export nope/x.dot", "nope"},
	{"graph --graph empty.json --export x.toml", "no lowering"},
	{"import", "import wants files"},
	{"import bad.stg", `bad.stg:2: the processing time is "-1"`},
	{"import bad.stg --out x.txt", `--out "x.txt": end the name in .json for a graph or .toml for a machine`},
	{"import good.stg --out x.toml", `--out "x.toml": the file describes a graph; end the name in .json`},
	{"import bad.stg --out nope/x.json", "nope"},
	{"import bad.stg --out x.json", `bad.stg:2: the processing time is "-1"; write a finite number, at least 0`},
	{"import bad.stg --out x.json --minibatches 0", "--minibatches 0: want at least 1"},
	{"import bad.stg --out x.json --format gml", `--format "gml": want stg, dot, placement`},
	{"import bad.stg --out x.json --unit 0s", "--unit 0s: want a time above 0"},
	{"import nope.stg --out x.json", "nope.stg"},
	{"import empty.json --out x.json", "empty.json is of no format that can be imported"},
	{"import /dev/zero --out x.json", "/dev/zero is no regular file"},
	{"import holes.json --out x.json", "holes.json is of no format that can be imported"},
	{"graph --model mlp --batch=-3", "--batch"},
	{"kernels nope", "nope"},
	{"kernels --by-variant", "--by-variant"},
	{"calibrate --out x.toml --joules -1s", "--joules"},
	{"kernels foreign", "foreign"},
	{"kernels laptop", "calibrate"},
	{"kernels broken", "broken"},
	{"compare", "compare wants an executed run, a predicted and an executed one, any runs, or two files of weights; no argument is given"},
	{"compare broken", "broken"},
	{"compare foreign foreign", "foreign"},
	{"compare none.npz none.npz", "none.npz"},
	{"compare none.npz foreign", "name both with their .npz"},
	{"compare none.npz none.npz --out .", "--out ."},
	{"compare none.npz none.npz --numbers -1", "--numbers"},
	{"plot", "plot wants the directory of a run"},
	{"report", "report wants the directories of runs"},
	{"plot foreign gant", "is not one of gantt, power, memory, compare, front, confusion; did you mean gantt"},
	{"verify", "verify wants the directory of a run; no argument is given"},
	{"plot foreign", "foreign"},
	{"plot foreign nope", `"nope"`},
	{"plot foreign --format bmp", "svg"},
	{"plot foreign --colour node", "phase"},
	{"trace foreign", "foreign"},
	{"trace foreign --format nope", "chrome"},
	{"verify foreign", "foreign"},
	{"verify broken", "broken"},
	{"verify newer", "dahl-run 999"},
	{"rerun foreign", "foreign"},
	{"rerun nope", "nope"},
	{"rerun cut", "interrupted"},
	{"rerun unsealed", "unsealed/manifest.json is not as dahl sealed it"},

	{"simulate --platform endless.toml --model mlp", "endless.toml is no regular file"},
	{"simulate --platform laptop --model endless.toml", "endless.toml is no regular file"},
	{"simulate --platform laptop --graph /dev/zero", "/dev/zero is no regular file"},
	{"simulate --platform laptop --graph holes.json", "holes.json has 8.8 TB, and what it describes takes at least 20 times as much"},
	{"simulate --platform laptop --model mlp --plan holes.json", "holes.json has 8.8 TB"},
	{"simulate --platform laptop --model mlp --lowering /dev/zero", "/dev/zero is no regular file"},
	{"simulate --platform laptop --model mlp --plan /dev/zero", "/dev/zero is no regular file"},
	{"execute --model dahl-cnn --data synthetic:3x2000x2000:100003 --batch 100003", "TB of memory are needed"},
	{"execute --model digits-cnn --limit 64 --init /dev/zero", "/dev/zero is no regular file"},
	{"verify endless", "manifest.json is no regular file"},
	{"execute --model seven.toml --data digits", "seven.toml:12: the last layer has 7 outputs and the data digits have 10 classes; write outputs = 10"},
	{"simulate --platform laptop --model unread.toml", `unread.toml:4: model "small": layer "conv1": no layer reads its output`},
	{"simulate --platform laptop --model later.toml", `later.toml:10: model "small": layer "flatten1": input "fc1" is not a layer before it; there are input, conv1`},
	{"simulate --platform server --devices gpu0 --model uneven.toml", `"conv1.forward[0:32,0:3]" (conv2d.nhwc) of graph "train": there is no kernel of it for devices of kind cuda; let a device of another kind take part`},
	{"simulate --platform laptop --model seven.toml --data digits", "seven.toml:12: the last layer has 7 outputs"},
	{"execute --model mlp --data synthetic:1x28x28:100:1", "one class: nothing to learn"},
	{"simulate --platform laptop --model mlp --data synthetic:1x28x28:100:1", "one class: nothing to learn"},
	{"execute --model mlp --data listed", "labels.csv:2: there is no file "},
	{"simulate --platform laptop --model mlp --resize 8", "--resize 8: want height and width in pixels, as in 32x48"},
	{"graph --model mlp --resize 8x0", "--resize 8x0: want height and width in pixels, as in 32x48"},
	{"execute --model mlp --resize 8x8", "synthetic cannot be resized; that is for PNG and JPEG files"},
	{"execute --model mlp --data digits --resize 8x8", "data digits: digits cannot be resized"},
}

// TestBadInput holds every command to one clear line, exit code 2 and no trace in
// the file system.
func TestBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "bad.toml", "[[")
	writeTestFile(t, "layer.toml", "[layer.nope]\nsamples = 2\n")
	writeTestFile(t, "empty.json", `{"format": "dahl-graph 1", "name": "empty", "buffers": [], "tasks": []}`)
	writeTestFile(t, "unit.toml", "name = \"m\"\n[[memory]]\nname = \"ram\"\ncapacity = 5\n")
	writeTestFile(t, "bad.json", "{")
	writeTestFile(t, "key.toml", "nam = \"m\"\n")
	writeTestFile(t, "key.json", `{"format": "dahl-graph 1", "tsks": []}`)
	writeTestFile(t, "bad.stg", "1\n0 -1 0\n")
	writeTestFile(t, "good.stg", "1\n0 1 0\n")
	writeTestFile(t, "typo.json", strings.Replace(twoTasks, `"*": 3000000`, `"cpu": 3000000, "cpuu": 4000000`, 1))
	writeTestFile(t, "bad.txt", "graph\nnonsense here")
	for _, link := range []string{"endless.toml", "endless/manifest.json"} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o777), os.Symlink("/dev/zero", link)))
	}
	writeTestFile(t, "seven.toml", strings.Replace(smallNetwork, "outputs = 10", "outputs = 7", 1))
	writeTestFile(t, "net.onnx", "")
	writeTestFile(t, "unread.toml", strings.Replace(smallNetwork, `kind = "flatten"`, "kind = \"flatten\"\ninput = [\"input\"]", 1))
	writeTestFile(t, "later.toml", strings.Replace(smallNetwork, `kind = "flatten"`, "kind = \"flatten\"\ninput = [\"fc1\"]", 1))
	writeTestFile(t, "uneven.toml", strings.Replace(smallNetwork, "kernel = 3", "kernel = 3\nstride = [2, 1]", 1))
	writeTestFile(t, "listed/labels.csv", "file,label\n1.png,cat\n")
	writeTestFile(t, "listed/images/readme", "")
	writeTestFile(t, "holes.json", "")
	must.Do(t, os.Truncate("holes.json", 1<<43))
	writeTestFile(t, "foreign/notes", "not dahl's")
	writeTestFile(t, "broken/manifest.json", "{")
	writeTestFile(t, "newer/manifest.json", `{"format": "dahl-run 999"}`)
	writeTestFile(t, "unsealed/manifest.json", `{"format": "dahl-run 2", "command": "execute", "complete": true}`)
	cut := &record.Manifest{Command: "execute"}
	d, err := rundir.Create("cut", cut)
	if err == nil {
		_, err = d.Commit(cut)
	}
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	before := listing(t)
	for _, c := range badInputs {
		r := dahl(t, t.Context(), strings.Fields(c.line)...)
		switch {
		case r.code != cli.ExitBadInput:
			t.Errorf("dahl %s: exit code %d, want %d; it said %q", c.line, r.code, cli.ExitBadInput, r.stderr)
		case !strings.HasPrefix(r.stderr, "dahl: ") || strings.Count(r.stderr, "\n") != 1 || !strings.HasSuffix(r.stderr, "\n"):
			t.Errorf("dahl %s: want one line that begins with \"dahl: \", got %q", c.line, r.stderr)
		case !strings.Contains(r.stderr, c.want):
			t.Errorf("dahl %s: want %q in the message, got %q", c.line, c.want, r.stderr)
		case r.stdout != "":
			t.Errorf("dahl %s: it printed %q", c.line, r.stdout)
		}
		if after := listing(t); after != before {
			t.Fatalf("dahl %s left something behind:\n%s", c.line, after)
		}
	}
}

// TestOutputLost: what could not be printed is an error, not a success without output.
func TestOutputLost(t *testing.T) {
	for _, line := range []string{"kernels", "graph --model mlp", "simulate --help"} {
		var stderr strings.Builder
		args := strings.Fields(line)
		if code := cli.Run(t.Context(), newRoot(args), args, full{}, &stderr); code != cli.ExitFailed || stderr.String() != "dahl: the disk is full\n" {
			t.Errorf("dahl %s: code %d, %q", line, code, &stderr)
		}
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }
