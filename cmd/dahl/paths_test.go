package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/cmd/dahl/shell"
	"dahl/must"
)

// asInput is the command line by which a command reads a path, through a flag or as its argument.
func asInput(cmd *cobra.Command, flag, path string) []string {
	switch {
	case flag == "":
		return []string{path}
	case flag == "data" && cli.Words(cmd) == "experiment run":
		return []string{"--data", "case=" + path}
	}
	return []string{"--" + flag, path}
}

// wanted are arguments without which a command looks at no flag.
var wanted = map[string][]string{"peer": {"pytorch"}, "experiment run": {"schedulers"}, "report": {"other"}, "rerun": {"other"}, "evaluate": {"other"}, "generate": {"other"}, "import": {"other"}}

// TestNoOutputIsAnInput tries every output flag of every command with each of its inputs: the same path, one through a link,
// one through a linked directory, and a second name of the file. Each is refused in one line, and the input stays.
func TestNoOutputIsAnInput(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "d/in.toml", "mine")
	writeTestFile(t, "dir/mine", "mine")
	for name, to := range map[string]string{"link.toml": "d/in.toml", "e": "d", "dirlink": "dir"} {
		if err := os.Symlink(to, name); err != nil {
			t.Skip("this system has no links: ", err)
		}
	}
	must.Do(t, os.Link("d/in.toml", "second.toml"))
	// With a separator they are paths where names are known, too.
	files, dirs := []string{"d/in.toml", "./link.toml", "e/in.toml", "./e/../d/in.toml", "./second.toml"}, []string{"./dir", "./dirlink"}
	pairs := 0
	for _, cmd := range withBodies(newRoot(nil)) {
		words := cli.Words(cmd)
		var in, out []string
		if cmd.ValidArgsFunction != nil && !slices.Contains(namesAsArguments, words) && shell.Arguments()[words] != nil {
			in = append(in, "")
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if _, ok := cli.OfCommand(flags.ReadPaths(), cmd, f.Name); ok {
				in = append(in, f.Name)
			}
			if _, ok := cli.OfCommand(writtenPaths, cmd, f.Name); ok && !slices.Contains(addsTo, words+"."+f.Name) {
				out = append(out, f.Name)
			}
		})
		for _, o := range out {
			for _, i := range in {
				for k := range files {
					from, to := files[k], files[len(files)-1-k]
					if k < len(dirs) {
						pairs++
						refusesPair(t, cmd, i, dirs[k], o, dirs[len(dirs)-1-k])
					}
					pairs++
					refusesPair(t, cmd, i, from, o, to)
				}
			}
		}
	}
	if pairs < 7*40 { // simulate, plan, execute, peer and graph have more than 40 pairs of flags
		t.Errorf("only %d pairs", pairs)
	}
	for _, path := range []string{"d/in.toml", "dir/mine"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
}

// refusesPair runs a command with an input and an output.
func refusesPair(t *testing.T, cmd *cobra.Command, in, from, out, to string) {
	t.Helper()
	line := strings.Fields(cli.Words(cmd))
	if in != "" {
		line = append(line, wanted[cli.Words(cmd)]...)
	}
	line = append(append(line, asInput(cmd, in, from)...), "--"+out, to)
	if r := wantEnd(t, cli.ExitBadInput, strings.Join(line, " "), fmt.Sprintf("dahl: --%s %s is also ", out, to)); r.stdout != "" {
		t.Errorf("printed is %s", r.stdout)
	}
}

// TestOutputAmongInputs: a file of a directory of data is not replaced by weights, and a file of weights beside the data is.
// Names that are no files stand in nobody's way.
func TestOutputAmongInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "d/train-images-idx3-ubyte", "mine")
	wantRefused(t, "execute --model tiny.toml --data d --save d/train-images-idx3-ubyte",
		"dahl: --save d/train-images-idx3-ubyte is a file of --data d, which this command reads; name one that ends in .npz")
	for range 2 {
		mustRun(t, strings.Fields("simulate --platform laptop --model mlp --data digits --limit 8 --steps 1 --out mlp")...)
		mustRun(t, strings.Fields("execute --model tiny.toml --data digits --limit 8 --save w.npz --init uniform:-1:1 --out digits")...)
	}
	// A file of another kind stays, whether or not the command reads it.
	for _, line := range []string{"report mlp --out tiny.toml", "execute --model mlp --save ./tiny.toml"} {
		wantRefused(t, line, "tiny.toml is there, and would no longer be what ends in .toml; name one that ends in .")
		if text, err := os.ReadFile("tiny.toml"); err != nil || string(text) != tinyNetwork {
			t.Errorf("dahl %s: the model is %q", line, text)
		}
	}
}

// TestPathsAreInATable: each flag whose value is called a file or a directory is one that is read, written or added to.
func TestPathsAreInATable(t *testing.T) {
	isPath := regexp.MustCompile("`(file|directory|path|interpreter)`|a TOML (model )?file")
	for _, cmd := range withBodies(newRoot(nil)) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, read := cli.OfCommand(flags.ReadPaths(), cmd, f.Name)
			_, written := cli.OfCommand(writtenPaths, cmd, f.Name)
			if isPath.MatchString(f.Usage) && !read && !written {
				t.Errorf("--%s of dahl %s is in no table of paths", f.Name, cli.Words(cmd))
			}
		})
	}
	for _, key := range addsTo {
		words, flag, _ := strings.Cut(key, ".")
		if cmd, _, err := newRoot(nil).Find(strings.Fields(words)); err != nil || cmd.Flags().Lookup(flag) == nil {
			t.Errorf("%s: there is no such flag: %v", key, err)
		}
	}
}
