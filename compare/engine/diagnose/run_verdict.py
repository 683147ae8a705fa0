"""The run verdict (``probe-web/run-verdict/1``): several parts, the earliest bad one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compare.engine.diagnose.choice_findings import choice_findings, choice_words
from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.pairing_findings import part_reason, unpaired_findings
from compare.engine.diagnose.rank_findings import ranks_alone, ranks_shifted
from compare.engine.diagnose.run_drift import Drift, stage_drifts
from compare.engine.diagnose.run_first import First, first_of, unknown_before
from compare.engine.diagnose.run_headline import alone_in, named_places, run_headline, unknown_words
from compare.engine.diagnose.run_settings import crossed, what_fails
from compare.engine.diagnose.verdict import SideFacts, finite
from compare.engine.diagnose.words import Text, both, counted
from compare.engine.model import JsonObject
from compare.engine.parts.pairing import Pairing, Part, PartKey, StagePair

SCHEMA = "probe-web/run-verdict/1"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part: its verdict document; or neither that nor an error where one side does not hold it.

    ``error`` is ``{code, params, message, where}`` of a part that could not be compared: it is named and hides nothing of the others.
    """

    part: Part
    document: JsonObject | None = None
    error: JsonObject | None = None


def run_verdict(
    outcomes: Sequence[Outcome],
    facts: tuple[SideFacts, SideFacts],
    timing: JsonObject,
    loop: JsonObject | None = None,
    pairing: Pairing | None = None,
) -> JsonObject:
    """``loop``: what ``run_loop.loop_document`` says of key data and configurations; ``pairing``: how stages and parts were paired."""
    loop = loop or {}
    stages = pairing.stages if pairing is not None else ()
    rows = [_row(outcome) for outcome in outcomes]
    documents = {outcome.part.n: outcome.document for outcome in outcomes if outcome.document is not None}
    word = _word([row["verdict"] for row in rows], loop.get("verdict"))
    if word == "identical" and loop.get("key_data") and loop.get("verdict") is None:
        word = "consistent"  # no table was compared, but there are some
    found = first_of(loop.get("first"), rows, documents)
    first = None if found is None else found.document()
    unknown = unknown_before(found, rows)
    judged = list(documents.values())
    sides = {
        name: {**judged[0][name], "step": None, "stage": None} if judged else {"name": facts[index].name, "role": facts[index].role}
        for index, name in enumerate(("left", "right"))
    }
    drifts = stage_drifts(rows, documents)
    instead = [side.instead for side in facts]
    findings = [
        *_unknown_before(unknown),
        *(finding.document() for finding in choice_findings(instead)),
        *_earlier(found, loop),
        *loop.get("findings", []),
        *_findings(found, rows, drifts),
        *(finding.document() for finding in unpaired_findings(pairing)),
        *(_of_ranks(rows, judged, loop) if len(rows) > 1 else ()),
        *(_once(judged, word) if len(rows) > 1 else ()),
        *_preconditions(loop, facts, stages),
    ]
    if len(rows) == 1 and judged:  # what is said of the only part is said of the runs
        findings += [finding for finding in judged[0]["findings"] if finding not in findings]
    document = {
        "schema": SCHEMA,
        **sides,
        "verdict": word,
        "headline": _with_choice(run_headline(word, rows, judged, found, loop, unknown), choice_words(instead)),
        "first": first,
        "first_part": found.row["n"] if found and found.row else None,
        "first_origin": _first_origin(found, unknown),
        "configurations": loop.get("configurations", []),
        "preconditions": loop.get("preconditions", []),
        "key_data": loop.get("key_data", []),
        "key_data_error": loop.get("error"),
        "checks": loop.get("checks", []),
        "stage_pairs": [_stages(pair, rows) for pair in stages],
        "drift": [*loop.get("drift", []), *(drift.document() for drift in drifts)],
        "findings": findings,
        "parts": rows,
        "timing": timing,
    }
    return finite(document)


def _first_origin(found: First | None, unknown: Sequence[JsonObject]) -> JsonObject | None:
    """The origin of the first part; that it is the first of the runs is not sure where an earlier part is unknown."""
    if found is None or found.place is None or "causes" not in found.place:
        return None
    return {**found.place, "confidence": "medium"} if unknown and found.place["confidence"] == "high" else found.place


def _unknown_before(unknown: Sequence[JsonObject]) -> list[JsonObject]:
    if not unknown:
        return []
    count, places = len(unknown), named_places(unknown)
    parts, what = counted(count, "earlier part"), unknown_words(unknown)
    finding = Finding(
        "earlier_parts_unknown",
        "warning",
        both(
            f"{parts} {what['en']} ({places['en']}): the first difference may lie there",
            f"更早的部分中有 {count} 个{what['zh']}（{places['zh']}）：首个差异可能在其中",
        ),
        evidence={"parts": [row["n"] for row in unknown]},
    )
    return [finding.document()]


def _with_choice(headline: Text, tail: Text) -> Text:
    """The headline of the only part has said it."""
    return headline if tail["en"] in headline["en"] else both(headline["en"] + tail["en"], headline["zh"] + tail["zh"])


def _key(key: PartKey | None) -> JsonObject | None:
    return None if key is None else {"stage": key[0], "step": key[1]}


def _row(outcome: Outcome) -> JsonObject:
    part, document = outcome.part, outcome.document
    stage, step = part.left or part.right or (None, None)
    return {
        "n": part.n,
        "left": _key(part.left),
        "right": _key(part.right),
        "stage": stage,
        "step": step,
        "ranks": [] if document is None else document["left"]["ranks"],
        "ranks_alone": (document or {}).get("ranks_alone", {"left": [], "right": []}),
        "by_rank": [] if document is None else document.get("by_rank", []),  # documents of older versions have none
        "state": "failed" if outcome.error else "done",
        "error": outcome.error,
        "reason": part_reason(part),
        "verdict": _verdict(outcome),
        "first_difference": None if document is None else document["first_difference"],
        "first_divergence": None if document is None else document["first_divergence"],
    }


def _verdict(outcome: Outcome) -> str:
    if outcome.document is not None:
        word: str = outcome.document["verdict"]
        return word
    return "not_comparable" if outcome.part.only is None else f"{outcome.part.only}_only"


def _word(words: Sequence[str], tables: str | None) -> str:
    """Of the parts and of the key data (None: no table on both sides)."""
    compared = [word for word in words if not word.endswith("_only")]
    if "diverged" in compared or tables == "diverged":
        return "diverged"
    if not (compared or tables) or "not_comparable" in (*compared, tables):  # what could not be compared must not hide behind what could
        return "not_comparable"
    return "identical" if all(word == "identical" for word in (*words, tables or "identical")) else "consistent"


def _stages(pair: StagePair, rows: Sequence[JsonObject]) -> JsonObject:
    """How a stage of the left side was paired, or could be. ``option`` is None where the folders are called nothing that can be chosen."""
    steps = [{row[side]["step"] for row in rows if row[side] and _is_of(row[side]["stage"], stage)} for side, stage in _sides_of(pair)]
    parts = sum(
        bool(row["left"] and row["right"] and (row["left"]["stage"], row["right"]["stage"]) == (pair.left, pair.right)) for row in rows
    )
    meets = {row["left"]["step"]: row["right"]["step"] for row in rows if row["left"] and row["right"]}
    possible = sum(meets.get(step, step) in steps[1] for step in steps[0])
    return {
        "left": pair.left,
        "right": pair.right,
        "reason": pair.reason,
        "used": pair.used,
        "parts": parts if pair.used else possible,
        "option": f"{pair.left}:{pair.right}" if pair.left and pair.right else None,
        "text": REASONS[pair.reason],
    }


def _sides_of(pair: StagePair) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    return ("left", pair.left), ("right", pair.right)


def _is_of(stage: str | None, name: str | None) -> bool:
    """Whether a stage is the one of that name, or one of its processes (generate/4711)."""
    return stage == name or (stage is not None and name is not None and stage.startswith(f"{name}/"))


REASONS: dict[str, Text] = {
    "same_name": both("the same stage on both sides", "两侧为同一阶段"),
    "same_kind": both("the same stage under another name", "同一阶段，名称不同"),
    "processes": both(
        "the same stage; its process folders have other numbers in every run and are paired in order",
        "同一阶段；进程目录的编号每次运行都不同，按先后顺序配对",
    ),
    "train_infer": both(
        "train against inference: the trainer's forward pass over what the engine generated", "训练对推理：训练端对推理端生成内容的前向计算"
    ),
    "requests": both("dumps of the same request, by the request logs", "依据请求日志，两侧为同一请求的数据"),
    "tokens": both(
        "dumps of the same tokens, by what they hold: steps are counted differently on the two sides",
        "依据数据中的词元配对：两侧步的计数方式不同",
    ),
    "chosen": both("chosen with the option stage", "由选项 stage 指定"),
    "only_one": both("one side holds nothing else of that step", "一侧在该步只有这一个阶段"),
}


def _earlier(found: First | None, loop: JsonObject) -> list[JsonObject]:
    """A stage that diverged before any table differed: the readings of the tables are not where it began."""
    table = loop.get("first")
    if found is None or found.table is not None or found.row is None or table is None:
        return []
    stage, step, key = found.row["stage"], found.row["step"], table["key"]
    when = both("", "") if step is None else both(f" at step {step}", f"在第 {step} 步")
    finding = Finding(
        "stage_first",
        "error",
        both(
            f"{stage or 'A part'} diverges{when['en']}, before any table differs: {key} differs {table['since']['en']}, "
            "and may only follow from it",
            f"{stage or '模块数据'} {when['zh']}已出现差异，早于任何关键数据表：{key} {table['since']['zh']}不同，可能由此引起",
        ),
        evidence={"part": found.row["n"], "key": table["key"]},
    )
    return [finding.document()]


def _findings(first: First | None, rows: Sequence[JsonObject], drifts: Sequence[Drift]) -> list[JsonObject]:
    found: list[Finding] = []
    if first is not None and first.table is not None and first.agrees is not None:
        stage, step, key, rank = first.agrees["stage"], first.table["step"], first.table["key"], first.table["rank"]
        on = both("", "") if len(first.agrees["by_rank"]) < 2 else both(f", rank {rank},", f"的 rank {rank} ")
        found.append(
            Finding(
                "stage_agrees",
                "info",
                both(
                    f"{stage} agrees at step {step}{on['en']} although {key} differs: look between its "
                    "last module and the table (sampling, log-softmax, temperature, masking), or below what statistics can see",
                    f"{key} 不同，但 {stage} 在第 {step} 步{on['zh']}一致：问题可能在最后一个模块与该表之间"
                    "（采样、log-softmax、温度、掩码），或小于统计量可见的范围",
                ),
                evidence={"part": first.agrees["n"]},
            )
        )
    bad = {row["stage"] for row in rows if row["verdict"] == "diverged"}
    found += [
        Finding(f"drift_{drift.kind}", "info", drift.text, evidence={"stage": drift.stage})
        for drift in drifts
        if drift.stage in bad and drift.kind != "none"
    ]
    return [finding.document() for finding in found]


def _of_ranks(rows: Sequence[JsonObject], judged: Sequence[JsonObject], loop: JsonObject) -> list[JsonObject]:
    """What is to be said of ranks once, and not only in every part: which stand against none, and which have other numbers."""
    parts = sum(bool(row["ranks_alone"]["left"] or row["ranks_alone"]["right"]) for row in rows)
    said = [finding["evidence"] for document in judged for finding in document.get("findings", []) if finding["code"] == "ranks_shifted"]
    moved = [pair for evidence in said for pair in zip(evidence["left"], evidence["right"], strict=True)]
    known = any(finding["code"] == "ranks_shifted" for finding in loop.get("findings", []))
    found = [*ranks_alone(alone_in(rows), parts), *(() if known else ranks_shifted(moved))]
    return [finding.document() for finding in found]


def _once(judged: Sequence[JsonObject], word: str) -> list[JsonObject]:
    """Of what each part says, what the runs must not hide: that all parts are the same files twice, or that ranks count as copies."""
    said = [{finding["code"]: finding for finding in document.get("findings", [])} for document in judged]
    same = [said[0]["same_input"]] if word == "identical" and said and all("same_input" in codes for codes in said) else []
    copied = next((codes["ranks_copied"] for codes in said if "ranks_copied" in codes), None)
    return [*same, *([] if copied is None else [copied])]


def _preconditions(loop: JsonObject, facts: tuple[SideFacts, SideFacts], stages: Sequence[StagePair]) -> list[JsonObject]:
    """Where train stands against inference: what the configurations say is not as such a comparison needs it."""
    if not crossed((facts[0].role, facts[1].role), stages):
        return []
    return [finding.document() for finding in what_fails(loop.get("preconditions", []))]
