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
    experts: int = 0  # 0: a dense MLP
    chosen: int = 2  # experts a token goes to
    shared: bool = False  # one expert more that every token goes through
    listed: bool = False  # experts as a list of modules that run only for their tokens, not as one module
    latent: bool = False  # multi-head latent attention

    def class_of(self, suffix: str) -> str:
        return f"{self.name}{suffix}"


QWEN2 = Family("Qwen2", qkv_bias=True, qk_norm=False, rope_theta=1_000_000.0)
QWEN3 = Family("Qwen3", qkv_bias=False, qk_norm=True, rope_theta=1_000_000.0)
LLAMA = Family("Llama", qkv_bias=False, qk_norm=False, rope_theta=10_000.0, eps=1e-5)
MISTRAL = Family("Mistral", qkv_bias=False, qk_norm=False, rope_theta=1_000_000.0, eps=1e-5)
QWEN3_MOE = Family("Qwen3Moe", qkv_bias=False, qk_norm=True, rope_theta=1_000_000.0, experts=4)
MIXED = Family("Qwen2Moe", qkv_bias=True, qk_norm=False, rope_theta=1_000_000.0, experts=4, shared=True, listed=True)
DEEPSEEK = Family("DeepseekV2", qkv_bias=False, qk_norm=False, rope_theta=10_000.0, latent=True)
DEEPSEEK_MOE = Family("DeepseekV3", qkv_bias=False, qk_norm=False, rope_theta=10_000.0, latent=True, experts=4, shared=True)
FAMILIES = {family.name: family for family in (QWEN2, QWEN3, LLAMA, MISTRAL, QWEN3_MOE, MIXED, DEEPSEEK, DEEPSEEK_MOE)}


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
    def expert_width(self) -> int:
        """The intermediate width of one expert."""
        return self.intermediate // 2

    @property
    def latent_width(self) -> int:
        """The width of the latent query, and of the latent key and value."""
        return self.hidden // 2

    @property
    def rotated(self) -> int:
        """How much of a head is rotated under latent attention."""
        return self.head_dim // 2

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
