package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"dahl/cmd/cli"
	"dahl/cmd/dahl/flags"
	"dahl/naming"
	"dahl/nn/data"
	"dahl/nn/weights"
	"dahl/train"
)

// generation are the arguments and flags of the command.
type generation struct {
	of       string // a run directory, or a file of weights
	model    string // of a file
	pieces   string // the directory of its vocabulary
	prompt   string
	tokens   int
	workers  int
	sampling train.Sampling
}

func newGenerate([]string) *cobra.Command {
	var g generation
	cmd := &cobra.Command{
		Use:   "generate RUN|WEIGHTS [--prompt TEXT]",
		Short: "let a network that was trained on a text write one",
		Long: `generate writes a prompt and the tokens that a trained network says behind it, one after the other: each is drawn from
the network's outputs for the last tokens before it. The network, its weights, the vocabulary and the machine are those of a run of
execute. Equal weights, prompts and flags give equal text on one machine.

Of a run on files of tokens, and of a file of weights (` + naming.OneOf(weights.Endings()) + `) with --model, whose vocabulary dahl does not know, prompt
and text are numbers with spaces between, but for --vocabulary DIR with GPT-2's files vocab.json and merges.txt. Weights of GPT-2 are read as Hugging Face and as nanoGPT keep them.`,
		Example: `  dahl execute --model gpt-tiny --data a.txt
  dahl generate dahl-execute --prompt "the " --tokens 500 --temperature 0.8 --top-k 20
  dahl generate gpt2/model.safetensors --model gpt2 --vocabulary gpt2/ --prompt "The cat" --tokens 20`,
		Args: cli.WantArgs(1, 1, "the directory of a training on a text, or a file of weights"),
		RunE: func(cmd *cobra.Command, of []string) error {
			g.of = of[0]
			return g.write(cmd.Context(), cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&g.model, "model", "", "network: a `name` (see dahl graph --list), a TOML model file, or an ONNX file (default: the run's)")
	f.StringVar(&g.pieces, "vocabulary", "", "`directory` of GPT-2's vocab.json and merges.txt, of a file of weights, or of a run on files of tokens")
	f.StringVar(&g.prompt, "prompt", "", "`text` that is continued (default: the end of a line, or token 0 where there is none)")
	f.IntVar(&g.tokens, "tokens", 200, "`tokens` to write")
	f.Float64Var(&g.sampling.Temperature, "temperature", 1, "`divisor` of the outputs before the softmax: below 1 likely tokens become likelier, and 0 takes the likeliest")
	f.IntVar(&g.sampling.TopK, "top-k", 0, "draw from the `k` likeliest tokens alone (0: all)")
	f.Uint64Var(&g.sampling.Seed, "seed", 1, "`seed` of the draws")
	f.IntVar(&g.workers, "workers", 0, "`cores` of the processor to use (default: all of the platform's)")
	flags.Before(cmd, func() error {
		if t := g.sampling.Temperature; !(t >= 0 && t <= math.MaxFloat32) {
			return fmt.Errorf("--temperature %g: want a number of at least 0", t)
		}
		if err := cli.CheckNotNegative("top-k", g.sampling.TopK); err != nil {
			return err
		}
		return flags.CheckRounds("tokens", g.tokens, 1)
	})
	return cmd
}

// write writes the prompt and the text.
func (g *generation) write(ctx context.Context, out io.Writer) error {
	e := evaluation{of: g.of, workers: g.workers}
	e.given.Batch, e.given.Model = 1, g.model
	o, err := e.options()
	if err != nil {
		return err
	}
	o.Outputs = true
	if g.pieces != "" {
		v, err := data.ReadMerges(g.pieces)
		if err != nil {
			return cli.InputErrorf("--vocabulary: %w", err)
		}
		o.Tokens = v
	}
	m, err := cli.LoadModel(o.Model)
	if err != nil {
		return err
	}
	length, classes := train.Window(m), m.Classes()
	if length == 0 {
		return cli.InputErrorf("%s: network %s does not say a token at each position; name the directory of a training on a text", g.of, m.Name)
	}
	if m.Defaults.MaskToken > 0 {
		return cli.InputErrorf("%s: network %s finds hidden tokens, and no next ones; name the directory of a training of a GPT", g.of, m.Name)
	}
	if o.Tokens != nil {
		classes = o.Tokens.Size()
	}
	prompt, err := promptOf(g.prompt, o.Tokens, m.Vocabulary())
	if err != nil {
		return cli.InputErrorf("--prompt %q: %w", g.prompt, err)
	}
	t, err := g.trainer(ctx, o, train.PromptData(length, classes))
	if err != nil {
		return err
	}
	defer t.Close()
	say := func(token int32) error {
		text := fmt.Sprintf(" %d", token)
		if o.Tokens != nil {
			text = o.Tokens.Decode([]int32{token})
		}
		_, err := io.WriteString(out, text)
		return err
	}
	if _, err := io.WriteString(out, g.prompt); err != nil {
		return err
	}
	g.sampling.Tokens = classes
	if err := t.Generate(ctx, prompt, g.tokens, g.sampling, say); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out)
	return err
}

// trainer is the network on the machine, with its weights.
func (g *generation) trainer(ctx context.Context, o *flags.Options, d train.Data) (*trainer, error) {
	m, err := cli.LoadModel(o.Model)
	if err == nil {
		m, err = train.Fit(m, d.Train)
	}
	if err != nil {
		return nil, err
	}
	p, err := flags.ThisMachine(o)
	if err != nil {
		return nil, err
	}
	w, err := newWorkload(ctx, o, m, p, d)
	if err != nil {
		return nil, err
	}
	return newTrainer(w, nil, nil)
}

// promptOf is the tokens of a prompt. A network takes those below a bound.
func promptOf(text string, v *data.Vocabulary, below int) (tokens []int32, err error) {
	switch {
	case v != nil && text == "":
		if tokens, err = v.Encode("\n"); err != nil {
			tokens = []int32{0}
		}
		return tokens, nil
	case v != nil:
		return v.Encode(text)
	case text == "":
		return []int32{0}, nil
	}
	for word := range strings.FieldsSeq(text) {
		token, err := strconv.Atoi(word)
		if err != nil || token < 0 || token >= below {
			return nil, fmt.Errorf("%q is no token; write numbers from 0 to %d with spaces between, as the run's data have them", word, below-1)
		}
		tokens = append(tokens, int32(token))
	}
	if tokens == nil {
		return nil, fmt.Errorf("no tokens; write numbers from 0 to %d with spaces between, or leave the flag away", below-1)
	}
	return tokens, nil
}
