package weights

import "strings"

// tokenOfViT is the class token of a vision transformer, as dahl names it.
const tokenOfViT = "vit.embeddings.cls_token.weight"

// torchvisionToken is its name in torchvision's files, by which these are known.
const torchvisionToken = "class_token"

// torchvisionWords are parts of the names in torchvision's vision transformers, each with the part that Hugging Face's and dahl's have instead. Of the
// dense layers between, older files have the first names and newer ones the second.
var torchvisionWords = strings.NewReplacer(
	torchvisionToken, tokenOfViT,
	"conv_proj.", "vit.embeddings.patch_embeddings.projection.",
	"encoder.pos_embedding", "vit.embeddings.position_embeddings.weight",
	"encoder.layers.encoder_layer_", "vit.encoder.layer.",
	".ln_1.", ".layernorm_before.",
	".self_attention.in_proj_", ".attention.attention.qkv.",
	".self_attention.out_proj.", ".attention.output.dense.",
	".ln_2.", ".layernorm_after.",
	".mlp.linear_1.", ".intermediate.dense.", ".mlp.0.", ".intermediate.dense.",
	".mlp.linear_2.", ".output.dense.", ".mlp.3.", ".output.dense.",
	"encoder.ln.", "vit.layernorm.",
	"heads.head.", "classifier.",
)
