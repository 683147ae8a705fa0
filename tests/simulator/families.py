"""Model families and sizes as data: what a decoder is made of and what its modules are called on the training side."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One architecture. `name` is the class prefix of Hugging Face transformers (`Qwen2` in `Qwen2DecoderLayer`)."""

    name: str
    qkv_bias: bool
    qk_norm: bool
    rope_theta: float = 10000.0
    eps: float = 1e-6
    activation_class: str = "SiLUActivation"

    def class_of(self, suffix: str) -> str:
        return f"{self.name}{suffix}"


QWEN2 = Family("Qwen2", qkv_bias=True, qk_norm=False, rope_theta=1_000_000.0)
QWEN3 = Family("Qwen3", qkv_bias=False, qk_norm=True, rope_theta=1_000_000.0)
LLAMA = Family("Llama", qkv_bias=False, qk_norm=False, rope_theta=10_000.0, eps=1e-5)
MISTRAL = Family("Mistral", qkv_bias=False, qk_norm=False, rope_theta=1_000_000.0, eps=1e-5)
FAMILIES = {family.name: family for family in (QWEN2, QWEN3, LLAMA, MISTRAL)}


@dataclass(frozen=True)
class Size:
    """Extents of a decoder."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int = 256

    @property
    def q_width(self) -> int:
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_dim


SIZES = {
    "nano": Size(2, 64, 4, 2, 16, 128),
    "tiny": Size(4, 64, 4, 2, 16, 128),
    "thin": Size(12, 96, 6, 2, 16, 256, 512),
    "small": Size(8, 128, 8, 2, 16, 352, 512),
    "square": Size(6, 128, 4, 4, 32, 384, 512),
    "medium": Size(16, 256, 8, 4, 32, 688, 1024),
    "deep": Size(32, 128, 8, 2, 16, 352, 512),
    "wide": Size(4, 512, 8, 2, 64, 1376, 1024),
    "half": Size(24, 448, 14, 2, 32, 1216, 1024),
    "large": Size(12, 1024, 16, 4, 64, 2816, 1024),
}
