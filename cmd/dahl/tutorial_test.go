package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"dahl/must"
)

var updateTutorial = flag.Bool("update", false, "write what the commands of the tutorial print, and its pictures, anew; read the difference")

const tutorialDir = "../../examples/tutorial"

// TestTutorial does every page as a reader would: in an empty directory, with dahl as a command, each
// file that is shown written, each command run in its order. What a command prints is what the page
// shows, and so is every picture.
func TestTutorial(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh to run the commands of the tutorial with")
	}
	names, err := filepath.Glob(tutorialDir + "/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no page (%v)", err)
	}
	bin := dahlCommand(t)
	for _, name := range names {
		for _, list := range []string{"README.md", "examples/README.md"} {
			text, err := os.ReadFile("../../" + list)
			if err != nil || !strings.Contains(string(text), "tutorial/"+filepath.Base(name)+")") {
				t.Errorf("%s does not lead to %s (%v)", list, name, err)
			}
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel() // each page has a directory and processes of its own
			p := &tutorialPage{t: t, name: name, dir: t.TempDir(), bin: bin}
			p.follow()
		})
	}
}

// dahlCommand is a directory with a command dahl, which is this program.
func dahlCommand(t *testing.T) string {
	self := must.Get(os.Executable())(t)
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec '%s' \"$@\"\n", asDahl, self)
	must.Do(t, os.WriteFile(filepath.Join(bin, "dahl"), []byte(script), 0o777))
	return bin
}

// tutorialPage is a page that is being followed.
type tutorialPage struct {
	t              *testing.T
	name, dir, bin string
	lines          []string
}

// follow goes through the page. Three things in it are not prose:
//
//	```console            commands behind "$ ", their further lines behind "> ", and what they print;
//	                      "console exit 2" where the last one is refused
//	```toml net.toml      a file
//	1-page/*.gz           files to begin with
//	![text](1-page/run/gantt.svg)   run/gantt.svg, as the commands have made it
func (p *tutorialPage) follow() {
	text := must.Get(os.ReadFile(p.name))(p.t)
	p.lines = strings.Split(string(text), "\n")
	picture := regexp.MustCompile(`^!\[.*\]\((.*)\)$`)
	pages := strings.TrimSuffix(filepath.Base(p.name), ".md") + "/"
	for _, name := range must.Get(filepath.Glob(filepath.Join(tutorialDir, pages, "*.gz")))(p.t) { // a reader downloads it
		must.Do(p.t, os.WriteFile(filepath.Join(p.dir, filepath.Base(name)), must.Get(os.ReadFile(name))(p.t), 0o666))
	}
	for i := 0; i < len(p.lines); i++ {
		if m := picture.FindStringSubmatch(p.lines[i]); m != nil {
			p.compare(m[1], strings.TrimPrefix(m[1], pages))
			continue
		}
		kind, ok := strings.CutPrefix(p.lines[i], "```")
		if !ok {
			continue
		}
		end := i + 1 + slices.Index(p.lines[i+1:], "```")
		switch words := strings.Fields(kind); {
		case end <= i:
			p.t.Fatalf("line %d: the block has no end", i+1)
		case kind == "console" || strings.HasPrefix(kind, "console exit "):
			end = p.commands(i+1, end, strings.TrimPrefix(strings.TrimPrefix(kind, "console"), " exit "))
		case len(words) == 2:
			must.Do(p.t, os.WriteFile(filepath.Join(p.dir, words[1]), []byte(strings.Join(p.lines[i+1:end], "\n")+"\n"), 0o666))
		}
		i = end
	}
	if *updateTutorial {
		must.Do(p.t, os.WriteFile(p.name, []byte(strings.Join(p.lines, "\n")), 0o666))
	}
}

// commands runs those between two lines and compares what they print. The last one may end with an
// exit code. It returns the end, which moves where what is printed is written anew.
func (p *tutorialPage) commands(from, end int, code string) int {
	for i := from; i < end; {
		command, ok := strings.CutPrefix(p.lines[i], "$ ")
		if !ok {
			p.t.Fatalf("line %d: %q is no command", i+1, p.lines[i])
		}
		for i++; i < end && strings.HasPrefix(p.lines[i], "> "); i++ {
			command += "\n" + strings.TrimPrefix(p.lines[i], "> ")
		}
		printed := i
		for i < end && !strings.HasPrefix(p.lines[i], "$ ") {
			i++
		}
		want := "0"
		if i == end && code != "" {
			want = code
		}
		got := p.run(command, want)
		if asShown(p.lines[printed:i], got) {
			continue
		}
		if !*updateTutorial {
			p.t.Errorf("line %d: %s\nprinted\n%swhich the page does not show; see -update", printed, command, got)
			continue
		}
		lines := slices.Collect(strings.Lines(got))
		for k := range lines {
			if lines[k] = strings.TrimSuffix(lines[k], "\n"); len(lines) == i-printed && asShown(p.lines[printed+k:printed+k+1], lines[k]+"\n") {
				lines[k] = p.lines[printed+k] // with its dots
			}
		}
		p.lines = slices.Replace(p.lines, printed, i, lines...)
		end += len(lines) - (i - printed)
		i = printed + len(lines)
	}
	return end
}

// run runs a command of the page.
func (p *tutorialPage) run(command, code string) string {
	cmd := exec.CommandContext(p.t.Context(), "sh", "-c", command)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != code {
		p.t.Fatalf("%s\nexit code %s, want %s (%v)\n%s", command, got, code, err, out)
	}
	return string(out)
}

// asShown reports whether a text is what lines show: "…" in a line stands for any text, and a line of
// it alone for any lines.
func asShown(lines []string, text string) bool {
	pattern := "^"
	for _, l := range lines {
		if l == "…" {
			pattern += `(?:.*\n)*?`
		} else {
			pattern += strings.ReplaceAll(regexp.QuoteMeta(l), "…", ".*") + `\n`
		}
	}
	return regexp.MustCompile(pattern + "$").MatchString(text)
}

// compare compares a picture beside the page with the file that the commands have made.
func (p *tutorialPage) compare(picture, made string) {
	got := must.Get(os.ReadFile(filepath.Join(p.dir, made)))(p.t)
	path := filepath.Join(tutorialDir, picture)
	want, err := os.ReadFile(path)
	if bytes.Equal(got, want) && err == nil {
		return
	}
	if !*updateTutorial {
		p.t.Errorf("%s is not what the commands draw (%v); look at it with -update", picture, err)
		return
	}
	must.Do(p.t, os.MkdirAll(filepath.Dir(path), 0o777))
	must.Do(p.t, os.WriteFile(path, got, 0o666))
}

// TestAsShown: what stands for what in a page.
func TestAsShown(t *testing.T) {
	for _, c := range []struct {
		shown, printed string
		want           bool
	}{
		{"step 3 ms", "step 3 ms\n", true},
		{"step 3 ms", "step 4 ms\n", false},
		{"step 3 ms", "step 3 ms\nmore\n", false},
		{"step … ms, … J", "step 4.25 ms, 7 J\n", true},
		{"step … ms", "step 4 s\n", false},
		{"one\n…\nlast", "one\ntwo\nthree\nlast\n", true},
		{"one\n…\nlast", "one\nlast\n", true},
		{"one\n…\nlast", "one\ntwo\n", false},
	} {
		if got := asShown(strings.Split(c.shown, "\n"), c.printed); got != c.want {
			t.Errorf("%q is shown by %q: %v", c.printed, c.shown, got)
		}
	}
}
