from __future__ import annotations

from pathlib import Path

from compare.engine.ingest import inventory, paths_to_sources, read_side
from compare.engine.model import JsonObject
from tests.engine.ingest.dumps import dump_json

CORPUS = Path(__file__).parents[2] / "data" / "corpus"


def passes(path: Path) -> list[list[JsonObject]]:
    return [dump["passes"] for dump in inventory(read_side(paths_to_sources([path]), "run"), 0)["dumps"]]


def generated(folder: Path, *tokens: int) -> Path:
    """A generate dump of one pass for each number of tokens; the activation is shared by two layers, so it is called twice a pass."""
    records = {}
    for call, count in enumerate(tokens):
        ids = {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [count], "Max": 9, "Min": 0, "Mean": None, "Norm": None}
        records[f"Module.embed_tokens.Embedding.forward.{call}"] = {"input_args": [ids], "output": [ids]}
        for again in (0, 1):
            records[f"Module.act_fn.SiLU.forward.{2 * call + again}"] = {"input_args": [ids], "output": [ids]}
    place = folder / "generate" / "step0" / "rank0"
    place.mkdir(parents=True)
    (place / "dump.json").write_bytes(dump_json(records))
    return folder


def test_a_real_rollout_prefills_both_prompts_and_then_decodes_one_token_each() -> None:
    """Two prompts of 6 tokens, 5 tokens generated for each: the last one is never fed back."""
    rollout, *_, reference = passes(CORPUS / "rl_run_a.zip")[:4]
    assert rollout == [
        {"kind": "prefill", "first": 0, "last": 0, "tokens": 12},
        {"kind": "decode", "first": 1, "last": 4, "tokens": 2},
    ]
    assert reference == []


def test_a_prompt_that_is_prefilled_in_chunks_is_prefill_throughout(tmp_path: Path) -> None:
    (found,) = passes(generated(tmp_path, 8, 8, 5, 1, 1, 1))
    assert [(row["kind"], row["first"], row["last"]) for row in found] == [("prefill", 0, 1), ("prefill", 2, 2), ("decode", 3, 5)]


def test_a_single_pass_and_equal_passes_say_nothing(tmp_path: Path) -> None:
    assert passes(generated(tmp_path / "one", 8)) == [[]]
    assert passes(generated(tmp_path / "equal", 4, 4)) == [[]]
    assert passes(CORPUS / "q2_train_micro2_stat.zip") == [[]]
