#!/usr/bin/python3
"""Writes gpt2.safetensors, a GPT-2 of two layers as Hugging Face saves it, and gpt2_outputs.safetensors, what it says: for
TestGPT2 of package train, with packages torch, transformers and safetensors. Extents are pairwise different primes where they can be.
"""
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(5)
config = GPT2Config(n_layer=2, n_head=3, n_embd=3 * 7, n_positions=13, vocab_size=17, initializer_range=0.5,
                    resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=None)
model = GPT2LMHeadModel(config).eval()
with torch.no_grad():
    for name, p in model.named_parameters():  # biases and norms are constant at first
        if p.dim() == 1:
            p += 0.25 * torch.randn_like(p)
state = {k: v.clone().contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}  # which save_pretrained leaves out, as it is wte.weight
save_file(state, "gpt2.safetensors", metadata={"format": "pt"})
model = model.to(torch.float64)
tokens = torch.randint(0, 17, [13])
with torch.no_grad():
    logits = model(tokens[None]).logits[0]
    greedy = tokens[:3].tolist()
    while len(greedy) < 13:
        greedy.append(int(model(torch.tensor([greedy])).logits[0, -1].argmax()))
save_file({"tokens": tokens, "logits": logits.contiguous(), "greedy": torch.tensor(greedy)}, "gpt2_outputs.safetensors")
