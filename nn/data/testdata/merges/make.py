#!/usr/bin/python3
"""Writes a small vocabulary in GPT-2's form, and the tokens of some texts by it: vocab.json, merges.txt and expected.json.

    cd nn/data/testdata/merges && python3 make.py

It needs packages tokenizers (Hugging Face), which learns the merges, and tiktoken (OpenAI). Both have to give the same tokens.
"""
import json

import tiktoken
from tokenizers import ByteLevelBPETokenizer

WORDS = "the then there they're we'll can't reading reads read 1234 123 2024 über größer naïve 東京 東 :-) ... !!! --\n\n\t  \n   "
TEXTS = [
    "", " ", "  ", "the reading", " the  reading", "they're we'LL can't I'd've 'tis 'S", "x=1234+56.7e8, 2024-11-28", "a\n\nb\n  c \t\r\n d   ",
    "größer über naïve NAÏVE", "東京 は 東", "\u00a0nbsp\u2003em\u3000wide\u200bzero", "½ ²³ Ⅷ ٣٤", "e\u0301 combining", "😀 !!! ...:-)''", "<|endoftext|>", "\x00\x1f\x85\x7f",
    "the" * 40, "!" * 33 + " " * 17 + "z", "'", "''s", " 's", "it's't", "\u2028line\u0085next", "tab\tthe\tthen",
]
PATTERN = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""

learner = ByteLevelBPETokenizer()
learner.train_from_iterator([WORDS * 3 + w for w in WORDS.split(" ")], vocab_size=256 + 61, min_frequency=2, show_progress=False)
learner.save_model(".")
with open("vocab.json") as f:
    numbers = json.load(f)
spoken = {}
free = 256
for b in range(256):
    if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b:
        spoken[chr(b)] = b
    else:
        spoken[chr(free)] = b
        free += 1
other = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks={bytes(spoken[c] for c in piece): n for piece, n in numbers.items()}, special_tokens={})
expected = []
for text in TEXTS:
    tokens = learner.encode(text).ids
    assert tokens == other.encode_ordinary(text), text
    expected.append({"text": text, "tokens": tokens})
with open("expected.json", "w") as f:
    json.dump(expected, f)
    f.write("\n")
