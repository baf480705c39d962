#!/usr/bin/python3
"""Writes a BERT, one with its pooler, a Llama and a ViT of two layers as Hugging Face saves them, and a ViT as torchvision does: NAME.safetensors, and what
they say as NAME_outputs.safetensors. For TestHuggingFace of package train, with packages torch, torchvision, transformers and safetensors. Extents are pairwise different primes where they can be.
"""
import shutil
import tempfile

import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from torchvision.models.vision_transformer import VisionTransformer
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM, ViTConfig, ViTForImageClassification
from transformers.models.llama import modeling_llama

POSITIONS, TOKENS, SEPARATOR = 13, 17, 2


def scatter(model):
    """Biases and norms are constant at first, and class tokens."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.dim() == 1 or name.endswith("_token"):
                p += 0.25 * torch.randn_like(p)


def write(name, model, shared, tokens, **inputs):
    scatter(model)
    state = {k: v.clone().contiguous() for k, v in model.state_dict().items() if k not in shared}  # which save_pretrained leaves out
    save_file(state, name + ".safetensors", metadata={"format": "pt"})
    with torch.no_grad():
        logits = model.eval().to(torch.float64)(tokens[None], **inputs).logits[0]
    save_file({"tokens": tokens, "logits": logits.contiguous()}, name + "_outputs.safetensors")


torch.manual_seed(7)
bert = BertForMaskedLM(BertConfig(
    num_hidden_layers=2, num_attention_heads=3, hidden_size=3 * 7, intermediate_size=11, max_position_embeddings=POSITIONS, vocab_size=TOKENS, initializer_range=0.5,
    hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="eager"))
tokens = torch.tensor([5, 3, 16, 4, SEPARATOR, 7, 9, 3, SEPARATOR, 0, 0, 0, 0])
kinds = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0])
write("bert", bert, ["cls.predictions.decoder.weight", "cls.predictions.decoder.bias"], tokens, attention_mask=(tokens != 0).long()[None], token_type_ids=kinds[None])


class Rotary(torch.nn.Module):
    """Llama's angles in float64."""

    def forward(self, x, position_ids):
        angles = position_ids[..., None] * 10000.0 ** (-torch.arange(0, 4, 2, dtype=torch.float64) / 4)
        return torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)


# Hugging Face's Llama computes norms and angles in float32 whatever its type.
modeling_llama.LlamaRMSNorm.forward = lambda self, x: F.rms_norm(x, x.shape[-1:], self.weight, self.variance_epsilon)
llama = LlamaForCausalLM(LlamaConfig(
    num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, hidden_size=6 * 4, intermediate_size=11, max_position_embeddings=POSITIONS, vocab_size=TOKENS,
    initializer_range=0.5, rms_norm_eps=1e-5, rope_theta=10000.0))
llama.model.rotary_emb = Rotary()
write("llama", llama, [], torch.randint(0, TOKENS, [POSITIONS]))

torch.manual_seed(11)
pooled = BertForSequenceClassification(BertConfig(
    num_hidden_layers=1, num_attention_heads=3, hidden_size=3 * 7, intermediate_size=11, max_position_embeddings=POSITIONS, vocab_size=TOKENS, initializer_range=0.5,
    hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="eager", num_labels=5))
write("bert-classifier", pooled, [], tokens, attention_mask=(tokens != 0).long()[None], token_type_ids=kinds[None])


def write_vision(name, model, save):
    """A network of images of 2×14×14 in patches of 7×7, and what it says of one."""
    scatter(model)
    save()
    image = torch.randint(0, 256, [1, 2, 14, 14])
    with torch.no_grad():
        logits = model.eval().to(torch.float64)(image.to(torch.float64) / 255)
    logits = getattr(logits, "logits", logits)[0]
    save_file({"pixels": image.flatten(), "logits": logits.contiguous()}, name + "_outputs.safetensors")


vit = ViTForImageClassification(ViTConfig(
    num_hidden_layers=2, num_attention_heads=3, hidden_size=3 * 5, intermediate_size=11, image_size=14, patch_size=7, num_channels=2, num_labels=13,
    initializer_range=0.5, attn_implementation="sdpa"))


def save_vit():
    """By Hugging Face, whose files have other names than the state_dict."""
    with tempfile.TemporaryDirectory() as folder:
        vit.save_pretrained(folder)
        shutil.copy(folder + "/model.safetensors", "vit.safetensors")


write_vision("vit", vit, save_vit)
vision = VisionTransformer(14, 7, 2, 3, 3 * 5, 11, num_classes=13)
vision.conv_proj = torch.nn.Conv2d(2, 3 * 5, 7, 7)  # of two channels
torch.nn.init.normal_(vision.heads.head.weight)
write_vision("vit-torchvision", vision, lambda: save_file(vision.state_dict(), "vit-torchvision.safetensors", metadata={"format": "pt"}))
