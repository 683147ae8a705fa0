"""A model that also sees: the blocks of the tower meet their like, and are no layers of the decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.engine.build import call, case, compare, integers, tensor

SEEN, WORDS = (20, 32), (12, 64)


def of(shape: tuple[int, ...], norm: float) -> dict[str, Any]:
    return tensor(norm, shape=shape)


def train(wrong: float = 0.0) -> dict[str, Any]:
    """transformers: tower and decoder inside ``model``, separate projections."""
    records: dict[str, Any] = {"Module.model.visual.patch_embed.PatchEmbed.forward.0": call(output=[of(SEEN, 5.0)])}
    for block in range(3):
        path = f"Module.model.visual.blocks.{block}"
        records[f"{path}.norm1.RMSNorm.forward.0"] = call(of(SEEN, 5.0 + block), output=[of(SEEN, 6.0)])
        records[f"{path}.attn.qkv.Linear.forward.0"] = call(of(SEEN, 6.0), output=[of((20, 96), 9.0)])
        records[f"{path}.attn.proj.Linear.forward.0"] = call(of(SEEN, 7.0), output=[of(SEEN, 4.0)])
        records[f"{path}.norm2.RMSNorm.forward.0"] = call(of(SEEN, 5.5), output=[of(SEEN, 6.5)])
        records[f"{path}.mlp.gate_proj.Linear.forward.0"] = call(of(SEEN, 6.5), output=[of((20, 48), 3.0)])
        records[f"{path}.mlp.up_proj.Linear.forward.0"] = call(of(SEEN, 6.5), output=[of((20, 48), 4.0)])
        records[f"{path}.mlp.down_proj.Linear.forward.0"] = call(of((20, 48), 2.0), output=[of(SEEN, 3.5)])
        records[f"{path}.VisionBlock.forward.0"] = call(of(SEEN, 5.0 + block), output=[of(SEEN, 6.0 + block)])
    records["Module.model.visual.merger.PatchMerger.forward.0"] = call(of(SEEN, 8.0), output=[of((5, 64), 11.0 + wrong)])
    records["Module.model.language_model.embed_tokens.Embedding.forward.0"] = call(
        integers(90, shape=(1, 12)), output=[of((1, *WORDS), 3.0)]
    )
    for layer in range(2):
        path = f"Module.model.language_model.layers.{layer}"
        records[f"{path}.self_attn.q_proj.Linear.forward.0"] = call(of((1, *WORDS), 4.0), output=[of((1, *WORDS), 4.5)])
        records[f"{path}.Qwen2DecoderLayer.forward.0"] = call(of((1, *WORDS), 3.0 + layer), output=[of((1, *WORDS), 4.0 + layer)])
    records["Module.model.language_model.norm.Qwen2RMSNorm.forward.0"] = call(of((1, *WORDS), 5.0), output=[of((1, *WORDS), 8.0)])
    return records


def infer(wrong: float = 0.0) -> dict[str, Any]:
    """vLLM: the tower beside ``language_model``, [tokens, 1, hidden], gate and up fused, the residual added inside norm2."""
    seen = (20, 1, 32)
    records: dict[str, Any] = {"Module.visual.patch_embed.PatchEmbed.forward.0": call(output=[of(SEEN, 5.0)])}
    for block in range(3):
        path = f"Module.visual.blocks.{block}"
        records[f"{path}.norm1.RMSNorm.forward.0"] = call(of(seen, 5.0 + block), output=[of(seen, 6.0)])
        records[f"{path}.attn.qkv.QKVParallelLinear.forward.0"] = call(of(seen, 6.0), output=[of((20, 1, 96), 9.0), None])
        records[f"{path}.attn.proj.RowParallelLinear.forward.0"] = call(of(seen, 7.0), output=[of(seen, 4.0), None])
        records[f"{path}.norm2.RMSNorm.forward.0"] = call(of(seen, 5.0 + block), of(seen, 4.0), output=[of(seen, 6.5), of(seen, 5.5)])
        fused = of((20, 1, 96), 5.0)
        records[f"{path}.mlp.gate_up_proj.MergedColumnParallelLinear.forward.0"] = call(of(seen, 6.5), output=[fused, None])
        records[f"{path}.mlp.down_proj.RowParallelLinear.forward.0"] = call(of((20, 1, 48), 2.0), output=[of(seen, 3.5), None])
        records[f"{path}.VisionBlock.forward.0"] = call(of(seen, 5.0 + block), output=[of(seen, 6.0 + block)])
    records["Module.visual.merger.PatchMerger.forward.0"] = call(of(seen, 8.0), output=[of((5, 64), 11.0 + wrong)])
    words = "Module.language_model.model"
    records[f"{words}.embed_tokens.VocabParallelEmbedding.forward.0"] = call(integers(90), output=[of(WORDS, 3.0)])
    for layer in range(2):
        path = f"{words}.layers.{layer}"
        into = [of(WORDS, 3.0)] if layer == 0 else [of(WORDS, 1.0), of(WORDS, 3.5)]
        out = [of(WORDS, 4.0)] if layer == 0 else [of(WORDS, 4.0), of(WORDS, 4.0)]
        records[f"{path}.input_layernorm.RMSNorm.forward.0"] = call(*into, output=out)
        records[f"{path}.self_attn.qkv_proj.QKVParallelLinear.forward.0"] = call(of(WORDS, 4.0), output=[of((12, 96), 6.0), None])
        records[f"{path}.Qwen2DecoderLayer.forward.0"] = call(integers(11), *into, output=[of(WORDS, 1.0), of(WORDS, 3.5)])
    records[f"{words}.norm.RMSNorm.forward.0"] = call(of(WORDS, 1.0), of(WORDS, 3.5), output=[of(WORDS, 8.0), of(WORDS, 5.0)])
    return records


def test_towers_meet_whatever_stands_around_them(tmp_path: Path) -> None:
    found = case(tmp_path, train(), infer(), primary=1)
    assert [places.convention.name for places in found.sides.places if places.convention] == ["huggingface", "vllm"]
    quantities = {found.quantity(pair) for pair in range(len(found.pairs)) if found.grades.comparable[pair]}
    for block in range(3):
        for name in ("attention_input", "query_key_value", "middle", "gate_up", "mlp_output", "stream"):
            assert f"vision_{name}.{block}" in quantities, (name, block)
    assert {"image_patches", "image_embeddings", "stream.0", "stream.1", "final_hidden"} <= quantities
    assert {"model.visual.blocks.1.norm2", "model.layers.1", "model.norm"} <= set(found.nodes.names)


def test_blocks_of_a_tower_are_no_layers_of_the_decoder(tmp_path: Path) -> None:
    document = compare(tmp_path, train(), infer())
    assert document["verdict"] == "consistent", document["headline"]["en"]
    assert [row["index"] for row in document["layers"]] == [0, 1]
    for side in ("left", "right"):
        assert document["coverage"][side]["explained"] == document["coverage"][side]["records"]


def test_a_fault_of_the_merger_is_found_in_the_tower(tmp_path: Path) -> None:
    document = compare(tmp_path, train(), infer(wrong=3.0))
    assert document["first_divergence"]["module"] == "model.visual.merger"
