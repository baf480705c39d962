package main

import (
	"os"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
)

// run carries out one command line in the current directory.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	code = cli.Run(t.Context(), newRoot(args), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestHelp(t *testing.T) {
	for _, sub := range newRoot(nil).Commands() {
		code, out, stderr := run(t, sub.Name(), "--help")
		if code != cli.ExitOK || !strings.Contains(out, "Usage:\n  dahl-bench "+sub.Name()) || sub.Short == "" || sub.Long == "" {
			t.Errorf("%s: exit code %d, %s; its help:\n%s", sub.Name(), code, stderr, out)
		}
	}
}

// badInputs are command lines that cannot be carried out. want is part of the
// message: what is wrong, in the user's terms.
var badInputs = []struct{ line, want string }{
	{"nope", `"nope"`},
	{"peers extra", "extra"},
	{"peers --threads 1 --python nope/python", "nope/python"},
	{"peers --threads 1 --python false", "has it"},
	{"peers --programs nope", "pytorch-compile"},
	{"peers --models nope", `"nope"`},
	{"peers --batches 0", "--batches 0:"},
	{"peers --threads=-1", "--threads -1:"},
	{"peers --threads 99999", "cores"},
	{"peers --repeats 0", "--repeats 0:"},
	{"peers --repetition 0s", "--repetition 0s"},
	{"peers --threads 1 --platform nope", "laptop"},
	{"peers --out nope/x.md", "nope"},
	{"peers --modes nope", "nope"},
	{"peers --settings compiled", "--device cpu"},
	{"plan --networks nope", `"nope"`},
	{"plan --platforms nope", "laptop"},
	{"plan --platforms laptop --devices nope", `"nope"`},
	{"plan --objectives nope", "energy"},
	{"plan --batches 0", "--batches 0:"},
	{"plan --hand=-1", "--hand -1:"},
	{"plan --climb=-1", "--climb -1:"},
	{"plan --dahl nope/dahl", "nope/dahl"},
}

// TestBadInput holds every command to one clear line, exit code 2 and no trace in
// the file system.
func TestBadInput(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("bad.json", []byte("{"), 0o666))
	for _, c := range badInputs {
		code, stdout, stderr := run(t, strings.Fields(c.line)...)
		if code != cli.ExitBadInput || !strings.HasPrefix(stderr, "dahl-bench: ") || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("dahl-bench %s: exit code %d, %q; want %d and %q; it printed %q", c.line, code, stderr, cli.ExitBadInput, c.want, stdout)
		}
		if files, err := os.ReadDir("."); err != nil || len(files) != 1 {
			t.Fatalf("dahl-bench %s left something behind: %v, %v", c.line, files, err)
		}
	}
}
