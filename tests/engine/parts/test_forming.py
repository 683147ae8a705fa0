"""Which parts of two runs are compared, told from their folders alone."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from compare.engine.loop import key_order, made_of, stage_kind
from compare.engine.options import Options
from compare.engine.parts.forming import pair_stages, parts_of
from compare.engine.parts.pairing import StagePair
from compare.engine.parts.tokens import Tokens


@dataclass(frozen=True)
class Dump:
    stage: str | None
    step: int | None
    rank: int | None = 0
    process: int | None = None
    tokens: tuple[Tokens, ...] = ()


def paired(
    left: list[Dump], right: list[Dump], **options: str
) -> tuple[list[tuple[object, object]], list[tuple[str | None, str | None, str]]]:
    found = parts_of(left, right, Options(**options))
    return [(part.left, part.right) for part in found.parts], [(pair.left, pair.right, pair.reason) for pair in found.stages if pair.used]


def run(*stages: str | None, steps: int = 2) -> list[Dump]:
    return [Dump(stage, step) for step in range(steps) for stage in stages]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("generate", ["actor_generate_sequences", "generate_sequences", "generate", "rollout", "generate/4711", "prefill"]),
        ("decode", ["decode"]),
        ("reference", ["reference_compute_log_prob", "ref_compute_log_prob", "ref_log_prob"]),
        ("values", ["critic_compute_values", "compute_values", "values"]),
        ("old_log_prob", ["actor_compute_log_prob", "old_log_prob", "compute_log_prob"]),
        ("update", ["actor_update", "update_actor", "actor_train", "actor_update/graph"]),
        ("critic_update", ["critic_update", "update_critic", "critic_train"]),
        (None, ["eval", "step", "left"]),
    ],
)
def test_a_stage_is_known_by_whatever_a_trainer_calls_it(kind: str | None, names: list[str]) -> None:
    assert [stage_kind(name) for name in names] == [kind] * len(names)


def test_parts_of_one_loop_run_twice_pair_by_name_in_pipeline_order() -> None:
    stages = ("actor_update", "critic_update", "reference_compute_log_prob", "actor_generate_sequences")
    pairs, used = paired(run(*stages), run(*stages[::-1]))
    order = [stages[3], stages[2], stages[1], stages[0]]
    assert pairs == [((stage, step), (stage, step)) for step in (0, 1) for stage in order]
    assert {reason for _, _, reason in used} == {"same_name"}


def test_stages_that_two_trainers_call_otherwise_pair_by_what_they_do() -> None:
    """MindSpeed-RL against verl."""
    pairs, used = paired(run("actor_generate_sequences", "actor_update"), run("generate_sequences", "update_actor"))
    assert pairs[0] == (("actor_generate_sequences", 0), ("generate_sequences", 0))
    assert used == [("actor_generate_sequences", "generate_sequences", "same_kind"), ("actor_update", "update_actor", "same_kind")]


def test_a_train_tree_against_an_inference_tree_pairs_the_forward_passes() -> None:
    pairs, used = paired(run("old_log_prob", "ref_compute_log_prob", "actor_train"), run("generate"))
    assert used == [("old_log_prob", "generate", "train_infer")]
    assert (("old_log_prob", 1), ("generate", 1)) in pairs
    assert (("actor_train", 1), None) in pairs


def test_within_one_loop_train_against_inference_is_proposed_and_not_used() -> None:
    stages: list[str | None] = ["actor_generate_sequences", "actor_compute_log_prob"]
    proposed = [pair for pair in pair_stages(stages, stages, chosen=False) if not pair.used]
    assert proposed == [
        StagePair("actor_compute_log_prob", "actor_generate_sequences", "train_infer", used=False),
        StagePair("actor_generate_sequences", "actor_compute_log_prob", "train_infer", used=False),
    ]


def test_a_chosen_pair_of_stages_pairs_step_by_step() -> None:
    stages = ("actor_generate_sequences", "actor_compute_log_prob")
    pairs, used = paired(run(*stages), run(*stages), stage="actor_compute_log_prob:actor_generate_sequences")
    assert pairs == [(("actor_compute_log_prob", step), ("actor_generate_sequences", step)) for step in (0, 1)]
    assert used == [("actor_compute_log_prob", "actor_generate_sequences", "chosen")]


def test_two_chosen_steps_meet_in_every_stage() -> None:
    stages = ("actor_generate_sequences", "actor_update")
    expected = [((stage, 1), (stage, 2)) for stage in stages]
    assert paired(run(*stages, steps=4), run(*stages, steps=4), step="1:2")[0] == expected
    assert paired(run(*stages, steps=4), run(*stages, steps=4), step="2:1")[0] == [(b, a) for a, b in expected]
    one_step = [Dump(stage, 2) for stage in stages]  # the choice is for the side that holds several
    assert paired(run(*stages, steps=4), one_step, step="1")[0] == expected
    parts = parts_of(run(*stages, steps=4), run(*stages, steps=4), Options(step="1:2")).parts
    assert {part.reason for part in parts} == {"chosen"}


def test_a_plain_train_tree_meets_the_only_stage_of_the_other_side() -> None:
    pairs, used = paired(run(None), run("generate"))
    assert pairs == [((None, step), ("generate", step)) for step in (0, 1)]
    assert used == [(None, "generate", "only_one")]


def test_one_dump_meets_the_stage_that_does_the_same() -> None:
    pairs, used = paired([Dump("actor_train", 1)], run("generate", "ref_log_prob", "update_actor"))
    assert pairs == [(("actor_train", 1), ("update_actor", 1))]
    assert used == [("actor_train", "update_actor", "same_kind")]


def test_inference_ranks_that_are_counted_from_elsewhere_go_rank_by_rank() -> None:
    left = [Dump("generate", 0, rank) for rank in (0, 1)]
    right = [Dump("generate", 0, rank) for rank in (5, 4)]
    (part,) = parts_of(left, right, Options()).parts
    assert part.ranks == [([0], [1]), ([1], [0])]
    (part,) = parts_of(left, [Dump("generate", 0, rank) for rank in (0, 2)], Options()).parts
    assert part.ranks == [([0, 1], [0, 1])]


def test_dumps_of_the_same_request_are_compared_wherever_they_lie() -> None:
    left = [Dump("update_actor", 0, 0), Dump("update_actor", 0, 1), Dump("update_actor", 1, 0)]
    right = [Dump("generate/4711", 3), Dump("generate/4712", 8), Dump("generate/4711", 9)]
    swapped = parts_of(right, left, Options(), requests=[(1, 0), (0, 1)])
    found = parts_of(left, right, Options(), requests=[(0, 1), (1, 0)])
    assert [(part.right, part.left, [(b, a) for a, b in part.ranks]) for part in swapped.parts] == [
        (part.left, part.right, list(part.ranks)) for part in found.parts
    ]
    assert [(part.left, part.right, part.ranks) for part in found.parts] == [
        (("update_actor", 0), ("generate/4712", 8), [([0], [1]), ([1], [0])]),
        (("update_actor", 1), None, []),
        (None, ("generate/4711", 9), []),
    ]
    assert {pair.reason for pair in found.stages} == {"requests"}


@pytest.mark.parametrize("logged", [(0, 1), (0,)], ids=["both_ranks", "first_rank"])
@pytest.mark.parametrize("trainers", [1, 2])
def test_all_ranks_of_an_engine_stand_against_the_trainer_of_their_request(logged: tuple[int, ...], trainers: int) -> None:
    """Tensor parallel engines whose ranks write logs of their own, or the first alone."""
    left = [Dump("actor", step, rank) for step in (0, 1) for rank in range(trainers)]
    right = [Dump("generate", step, rank, 4711 + rank) for step in (0, 5, 7) for rank in (0, 1)]
    served = {0: 7, 1: 5}
    requests = [
        (a, b)
        for a, trained in enumerate(left)
        if trained.rank in logged
        for b, dump in enumerate(right)
        if dump.rank in logged and dump.step == served[trained.step or 0]
    ]
    parts = parts_of(left, right, Options(), requests=requests).parts
    assert [(part.left, part.right) for part in parts] == [
        (("actor", 0), ("generate", 7)),
        (("actor", 1), ("generate", 5)),
        (None, ("generate", 0)),
    ]
    assert parts[0].ranks == ([([0], [4]), ([1], [5])] if trainers == 2 else [([0], [4, 5])])
    back = parts_of(right, left, Options(), requests=[(b, a) for a, b in requests]).parts
    assert [(part.right, part.left, [(b, a) for a, b in part.ranks]) for part in back] == [
        (part.left, part.right, list(part.ranks)) for part in parts
    ]


def rollout(*processes: int, steps: int = 2, rank: int = 0) -> list[Dump]:
    return [Dump(f"generate/{process}", step, rank, process) for process in processes for step in range(steps)]


def test_process_folders_that_have_other_numbers_in_every_run_pair_in_order() -> None:
    left, right = [*rollout(4711, 4712), *run("actor")], [*rollout(8800, 8801), *run("actor")]
    pairs, used = paired(left, right)
    assert used == [
        ("generate/4711", "generate/8800", "processes"),
        ("generate/4712", "generate/8801", "processes"),
        ("actor", "actor", "same_name"),
    ]
    assert (("generate/4712", 1), ("generate/8801", 1)) in pairs
    assert all(a is not None and b is not None for a, b in pairs)
    back, _ = paired(right, left)
    assert {(b, a) for a, b in back} == set(pairs)


def test_a_process_more_on_one_side_is_on_that_side_only() -> None:
    pairs, used = paired(rollout(99, 100), rollout(7, 8, 9))
    assert [(a, b) for a, b, _ in used] == [("generate/99", "generate/7"), ("generate/100", "generate/8")]
    assert (None, ("generate/9", 0)) in pairs
    _, used = paired(rollout(99, 100), rollout(100))  # a part of the same run
    assert [(a, b) for a, b, _ in used] == [("generate/100", "generate/100")]


def test_processes_of_an_engine_spread_over_cards_pair_rank_by_rank() -> None:
    left = [*rollout(1, 3, rank=0), *rollout(2, 4, rank=1)]
    right = [*rollout(12, 14, rank=0), *rollout(11, 13, rank=1)]
    _, used = paired(left, right)
    assert {(a, b) for a, b, _ in used} == {
        ("generate/1", "generate/12"),
        ("generate/3", "generate/14"),
        ("generate/2", "generate/11"),
        ("generate/4", "generate/13"),
    }


def test_a_stage_without_its_process_chooses_all_its_processes() -> None:
    pairs, _ = paired([*rollout(4711, 4712), *run("actor")], [*rollout(1, 2), *run("actor")], stage="generate")
    assert [a[0] for a, _ in pairs if a is not None] == ["generate/4711", "generate/4712"] * 2
    assert paired(rollout(4711, 4712), rollout(1, 2), stage="generate/4712:generate/1")[0] == [
        (("generate/4712", step), ("generate/1", step)) for step in (0, 1)
    ]
    loop = [*rollout(4711, 4712), *run("actor")]
    assert len(parts_of(loop, loop, Options()).parts) == 6


def test_what_a_key_is_made_of_is_followed_through_keys_that_are_there() -> None:
    keys = ["prompts", "responses", "ref_log_probs", "log_prob", "loss", "mine"]
    assert made_of("loss", keys) == {"prompts", "responses", "ref_log_probs", "log_prob"}
    assert made_of("ref_log_probs", keys) == {"prompts", "responses"}
    assert made_of("mine", keys) == set(keys) - {"mine"}
    assert sorted(sorted(keys), key=key_order) == keys
