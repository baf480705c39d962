#!/usr/bin/python3
"""Writes python.safetensors, which TestDecodeSafetensors reads, with packages torch and safetensors.

Numbers are of all types that dahl reads. Of 16 bits they are zeros, the least and the greatest of a type, one with all bits of
its fraction, infinities and NaN.
"""
import torch
from safetensors.torch import save_file


def bits(values, dtype):
    return torch.tensor(values, dtype=torch.uint16).view(dtype)


save_file({
    "f64": torch.tensor([[0.1, -2.5, 1e300]], dtype=torch.float64),
    "f32": torch.tensor([[0.1], [-2.5]], dtype=torch.float32),
    "i64": torch.tensor(-3, dtype=torch.int64),
    "i32": torch.tensor([7, -7], dtype=torch.int32),
    "u8": torch.tensor([0, 255, 3], dtype=torch.uint8),
    "f16": bits([0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0xBE00, 0x7BFF, 0x7C00, 0xFC00, 0x7E00], torch.float16),
    "bf16": bits([0x0000, 0x8000, 0x0001, 0x0080, 0x3F80, 0xBFC0, 0x7F7F, 0x7F80, 0xFF80, 0x7FC0], torch.bfloat16),
    "größe.\"weight\"": torch.zeros(0, 3, dtype=torch.float32),
}, "python.safetensors", metadata={"format": "pt"})
