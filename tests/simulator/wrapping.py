"""What training wrappers do to module paths and classes."""

from __future__ import annotations

import re
from collections.abc import Callable

LAYER = re.compile(r"(layers\.\d+)(?=\.|$)")
# wrapper → (prefix of every path, component after layers.N, class prefix of a layer, whether the root module is recorded)
WRAPPINGS: dict[str, tuple[str, str, str, bool]] = {
    "plain": ("", "", "", False),
    "fsdp1": ("_fsdp_wrapped_module", "_fsdp_wrapped_module", "", True),
    "fsdp2": ("", "", "FSDP", False),
    "ddp": ("module", "", "", True),
    "compile": ("_orig_mod", "", "", True),
    "checkpoint": ("", "_checkpoint_wrapped_module", "", False),
    "megatron": ("module.module", "", "", False),
    "fsdp1_checkpoint": ("_fsdp_wrapped_module", "_fsdp_wrapped_module._checkpoint_wrapped_module", "", True),
}


def wrapper(kind: str) -> Callable[[str, str], tuple[str, str]]:
    """(canonical path, class) → (recorded path, recorded class)."""
    prefix, after_layer, class_prefix, _ = WRAPPINGS[kind]

    def wrap(path: str, name: str) -> tuple[str, str]:
        if class_prefix and re.search(r"layers\.\d+$", path):
            name = class_prefix + name
        if after_layer:
            path = LAYER.sub(rf"\1.{after_layer}", path)
        chunk, _, rest = path.partition(".")
        if chunk.isdecimal():  # one of a list of models
            return f"{chunk}.{prefix}.{rest}", name
        return ".".join(part for part in (prefix, path) if part), name

    return wrap


def records_root(kind: str) -> bool:
    return WRAPPINGS[kind][3]


def radix(path: str, kind: str) -> tuple[str, str]:
    """SGLang's names for what vLLM calls otherwise."""
    return path, "RadixAttention" if path.endswith((".attn", ".mla_attn")) else kind
