package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"dahl/cmd/cli"
	"dahl/must"
	"dahl/nn/npz"
	"dahl/rundir"
)

// sequenceNetwork says for each of 5 characters the next one, by that character alone.
const sequenceNetwork = `name = "pairs"
input = [5]
[train]
optimizer = "adamw"
lr = 0.02
decay_dims = 2
[[layer]]
kind = "embedding"
tokens = 13
width = 7
[[layer]]
kind = "dense"
outputs = 13
`

// someText has 13 characters that differ, in 260 of them.
var someText = strings.Repeat("now is the time. ", 8) + "\n" + strings.Repeat("go on. ", 17) + "then"

const textTraining = "execute --model pairs.toml --data a.txt --batch 7 --workers 1 --epochs 3 --dtype float64 --checkpoint every=2steps --out "

// TestText trains on the characters of a text, and ends and goes on in the middle of the second epoch: weights are the same. An evaluation
// has the loss of the run. What the network writes without draws is the chain of greatest outputs, which are computed here: row e of
// the embedding, times the dense layer's rows, plus its biases.
func TestText(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "pairs.toml", sequenceNetwork)
	writeTestFile(t, "a.txt", someText)
	said := mustRun(t, strings.Fields(textTraining+"whole")...)
	must.Contain(t, said, "perplexity")
	cutAfter(t, "8", strings.Fields(textTraining+"cut")...) // an epoch has 46 samples, 7 steps
	mustRun(t, "execute", "--resume", "cut")
	whole, cut := manifestOf(t, "whole"), manifestOf(t, "cut")
	if whole.WeightsHash != cut.WeightsHash || whole.Tokens == nil || whole.Tokens.Characters != "\n .eghimnostw" {
		t.Errorf("weights %.12s and %.12s, vocabulary %+v", whole.WeightsHash, cut.WeightsHash, whole.Tokens)
	}
	was := summaryOf(t, "whole")
	if p := float64(*was.Perplexity); math.Abs(p-math.Exp(float64(*was.TestLoss))) > 1e-12*p {
		t.Errorf("perplexity %v of the loss %v", p, float64(*was.TestLoss))
	}
	mustRun(t, "evaluate", "whole")
	if is := summaryOf(t, "dahl-evaluate"); *is.TestLoss != *was.TestLoss || *is.Perplexity != *was.Perplexity {
		t.Errorf("evaluated loss %v, of the run %v", *is.TestLoss, *was.TestLoss)
	}
	mustRun(t, strings.Fields("execute --model pairs.toml --data a.txt --batch 7 --workers 1 --checkpoint never --out again")...)
	mustRun(t, "rerun", "again")
	mustRun(t, strings.Fields("simulate --platform whole/platform.toml --model pairs.toml --data a.txt --batch 7 --dtype float64 --policy heft --out sim")...)
	sameFiles(t, rundir.GraphFile, "whole", "sim")

	arrays := map[string][]float64{}
	for _, a := range must.Get(npz.Read("whole/weights.npz", nil))(t) {
		arrays[a.Name] = a.Float64s()
	}
	want, token := "w", slices.Index([]rune(whole.Tokens.Characters), 'w')
	for range 20 {
		z := make([]float64, 13)
		for c := range z {
			z[c] = arrays["fc1.bias"][c]
			for k := range 7 {
				z[c] += arrays["fc1.weight"][7*c+k] * arrays["embed1.weight"][7*token+k]
			}
		}
		token = slices.Index(z, slices.Max(z))
		want += whole.Tokens.Characters[token : token+1]
	}
	if got := mustRun(t, strings.Fields("generate whole --prompt w --tokens 20 --temperature 0")...); got != want+"\n" {
		t.Errorf("it writes %q, want %q", got, want)
	}
	// The last five characters decide, and the seed.
	first := mustRun(t, "generate", "whole", "--prompt", "the time", "--tokens", "40", "--top-k", "3")
	again := mustRun(t, "generate", "whole", "--prompt", "time", "--tokens", "40", "--top-k", "3")
	other := mustRun(t, "generate", "whole", "--prompt", "time", "--tokens", "40", "--top-k", "3", "--seed", "2")
	if first != "the "+again || again == other || len(again) != 45 {
		t.Errorf("it writes\n%q\n%q\n%q", first, again, other)
	}
}

// TestTokens: a network that was trained on tokens of nanoGPT's files writes tokens.
func TestTokens(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "pairs.toml", sequenceNetwork)
	must.Do(t, os.Mkdir("set", 0o777))
	for name, n := range map[string]int{"set/train.bin": 60, "set/val.bin": 13} {
		var raw strings.Builder
		for i := range n {
			raw.Write([]byte{byte(3 * i % 13), 0})
		}
		writeTestFile(t, name, raw.String())
	}
	// After 100 epochs it has learnt that each token is the one before plus 3, modulo 13.
	mustRun(t, strings.Fields("execute --model pairs.toml --data set --batch 11 --workers 1 --epochs 100 --save w.safetensors --out run")...)
	if got := mustRun(t, "generate", "run", "--prompt", "5 8", "--tokens", "6", "--temperature", "0"); got != "5 8 11 1 4 7 10 0\n" {
		t.Errorf("it writes %q", got)
	}
	// Weights alone have no vocabulary.
	if got := mustRun(t, strings.Fields("generate w.safetensors --model pairs.toml --prompt 8 --tokens 2 --temperature 0")...); got != "8 11 1\n" {
		t.Errorf("of a file it writes %q", got)
	}
	wantRefused(t, "generate w.safetensors", "w.safetensors has weights without their network; name it with --model")
	wantRefused(t, "generate run --prompt x", `"x" is no token; write numbers from 0 to 12`)
	wantRefused(t, "generate run --prompt 13", `"13" is no token`)
	if r := dahl(t, t.Context(), "generate", "run", "--prompt", " "); r.code != cli.ExitBadInput || r.stdout != "" || !strings.HasSuffix(r.stderr, "--prompt \" \": no tokens; write numbers from 0 to 12 with spaces between, or leave the flag away\n") {
		t.Errorf("a prompt of a space: exit code %d, %q, %q", r.code, r.stdout, r.stderr)
	}
}

// TestTextRefuses: what no network can be trained on or write is one line and exit code 2, and leaves nothing.
func TestTextRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	writeTestFile(t, "pairs.toml", sequenceNetwork)
	writeTestFile(t, "tiny.toml", tinyNetwork)
	writeTestFile(t, "a.txt", someText)
	writeTestFile(t, "more.txt", someText+"xyz")
	writeTestFile(t, "odd.bin", "\x01\x00\x02")
	writeTestFile(t, "big.bin", strings.Repeat("\x01\x00\xff\x00", 40))
	writeTestFile(t, "one.txt", strings.Repeat("a", 100))
	mustRun(t, strings.Fields(textTraining+"run")...)
	mustRun(t, strings.Fields(tinyTraining+"--out digits")...)
	for line, want := range map[string]string{
		"execute --model pairs.toml --data more.txt --out x":             "data more.txt: tokens are 0 to 15, and network pairs takes 0 to 12; take a network with more tokens",
		"execute --model pairs.toml --data odd.bin --out x":              "3 bytes are no whole number of tokens of 2",
		"execute --model pairs.toml --data big.bin --out x":              "data big.bin: tokens are 0 to 255",
		"execute --model pairs.toml --data one.txt --out x":              "1 token: nothing to learn",
		"execute --model tiny.toml --data a.txt --out x":                 "the network has no label for each position",
		"execute --model pairs.toml --data a.txt --vocabulary b --out x": `vocabulary "b": want characters or bytes`,
		"execute --model pairs.toml --data set.npz --vocabulary bytes":   "--vocabulary bytes is for a text",
		"evaluate run --data more.txt":                                   `character 'x' at byte 260 is not in the vocabulary "\n .eghimnostw" of the run`,
		"generate":                                                       "the directory of a training on a text",
		"generate nowhere":                                               "nowhere: no such directory or file",
		"generate digits":                                                "network tiny does not say a token at each position",
		"generate run --prompt ax":                                       `--prompt "ax": character 'a' at byte 0 is not in the vocabulary`,
		"generate run --temperature -1":                                  "want a number of at least 0",
		"generate run --tokens 0":                                        "--tokens 0: want 1 to",
		"generate run --top-k -1":                                        "top-k",
	} {
		wantRefused(t, line, want)
	}
	if code := dahl(t, t.Context(), "generate", "run", "--tokens", "1").code; code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}
