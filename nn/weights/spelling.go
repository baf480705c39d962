package weights

import (
	"slices"
	"strings"

	"dahl/nn/npz"
)

// Spelling is how a file calls and lays out the parameters of a transformer. Of a GPT-2 dahl does as nanoGPT does: transformer.h.0.attn.c_attn.weight has a row
// for each output, as in PyTorch's Linear. Of others it does as Hugging Face's models do, but for dense layers that [Joins] lists.
type Spelling struct {
	Prefix  string // in front of the file's names
	Strip   string // that the file's names begin with
	ByInput bool   // weights of dense layers in blocks have a row for each input, as in the Conv1D of Hugging Face's GPT-2

	words *strings.Replacer // of the file's names; nil means that they stay
}

// compiledPrefix begins all names of a compiled model, see torch.compile.
const compiledPrefix = "_orig_mod."

// barePrefixes are beginnings of names that the files of Hugging Face's models without a head lack.
var barePrefixes = []string{gptPrefix, "model.", "bert.", "vit."}

const gptPrefix = "transformer."

// renamed are names of Hugging Face's, each with the name that dahl has instead.
var renamed = map[string]string{
	"cls.predictions.bias":               "cls.predictions.decoder.bias",
	"vit.embeddings.cls_token":           tokenOfViT,
	"vit.embeddings.position_embeddings": "vit.embeddings.position_embeddings.weight",
}

// leftOut are parts of names of arrays that no network of dahl has: masks, numbers that follow from the positions, and heads of other tasks. A name that begins or ends with
// one is skipped if the network does not know it.
var leftOut = []string{".attn.bias", ".attn.masked_bias", "rotary_emb.inv_freq", "embeddings.position_ids", "bert.pooler.", "vit.pooler.", "cls.seq_relationship."}

// denseInBlocks are the ends of names of the weights that Hugging Face's GPT-2 has by input.
var denseInBlocks = []string{".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"}

// SpellingOf finds the spelling of a file by its shapes, for the shapes of a network, both by name.
func SpellingOf(file, network map[string][]int) (s Spelling) {
	for name := range network {
		if _, there := file[compiledPrefix+name]; there {
			s.Strip = compiledPrefix
		}
		for _, prefix := range barePrefixes {
			if bare, ok := strings.CutPrefix(name, prefix); ok && file[bare] != nil {
				s.Prefix = prefix
			}
		}
	}
	if file[torchvisionToken] != nil && network[tokenOfViT] != nil {
		s.words = torchvisionWords
	}
	for name, shape := range file {
		want := network[s.name(name)]
		if strings.HasSuffix(name, denseInBlocks[0]) && len(shape) == 2 && len(want) == 2 && shape[0] == want[1] && shape[1] == want[0] {
			s.ByInput = true // three times as many outputs as inputs: no square
		}
	}
	return s
}

func (s *Spelling) name(name string) string {
	name = s.Prefix + strings.TrimPrefix(name, s.Strip)
	if s.words != nil {
		name = s.words.Replace(name)
	}
	if other, ok := renamed[name]; ok {
		return other
	}
	return name
}

// Respell gives an array without its numbers its name and shape in a network, where it may lack a first extent of 1. It leaves out what is no parameter, and reports whether
// the numbers are to be turned by [Transpose].
func (s *Spelling) Respell(a *npz.Array, network map[string][]int) (turned bool, err error) {
	a.Name = s.name(a.Name)
	want, known := network[a.Name]
	if len(a.Shape) == len(want)+1 && a.Shape[0] == 1 && known {
		a.Shape = a.Shape[1:]
	}
	if !known && slices.ContainsFunc(leftOut, func(part string) bool { return strings.HasSuffix(a.Name, part) || strings.HasPrefix(a.Name, part) }) {
		return false, npz.ErrSkip
	}
	if !s.ByInput || len(a.Shape) != 2 || !slices.ContainsFunc(denseInBlocks, func(end string) bool { return strings.HasSuffix(a.Name, end) }) {
		return false, nil
	}
	a.Shape = []int{a.Shape[1], a.Shape[0]}
	return true, nil
}

// Transpose turns the numbers of a matrix that has its new shape already.
func Transpose(a *npz.Array) {
	size, rows, columns := int(a.Type.SizeBytes()), a.Shape[0], a.Shape[1]
	data := make([]byte, len(a.Data))
	for r := range rows {
		for c := range columns {
			copy(data[(r*columns+c)*size:][:size], a.Data[(c*rows+r)*size:])
		}
	}
	a.Data = data
}
