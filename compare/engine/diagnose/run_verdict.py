"""The run verdict (``probe-web/run-verdict/1``): several parts, the earliest bad one first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compare.engine.diagnose.findings import Finding
from compare.engine.diagnose.pairing_findings import part_reason, unpaired_findings
from compare.engine.diagnose.rank_findings import ranks_alone, ranks_alone_words, ranks_shifted
from compare.engine.diagnose.run_drift import Drift, stage_drifts
from compare.engine.diagnose.run_first import First, first_of
from compare.engine.diagnose.run_settings import crossed, what_fails
from compare.engine.diagnose.verdict import SideFacts, finite
from compare.engine.diagnose.words import Text, both, counted, short
from compare.engine.model import JsonObject
from compare.engine.pairing import Pairing, Part, PartKey, StagePair

SCHEMA = "probe-web/run-verdict/1"
NAMED_FAILURES = 3  # how many failed parts the headline names; the rows have them all


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
    judged = list(documents.values())
    sides = {
        name: {**judged[0][name], "step": None, "stage": None} if judged else {"name": facts[index].name, "role": facts[index].role}
        for index, name in enumerate(("left", "right"))
    }
    drifts = stage_drifts(rows, documents)
    findings = [
        *_earlier(found, loop),
        *loop.get("findings", []),
        *_findings(found, rows, drifts),
        *(finding.document() for finding in unpaired_findings(pairing)),
        *(_of_ranks(rows, judged, loop) if len(rows) > 1 else ()),
        *_preconditions(loop, facts, stages),
    ]
    if len(rows) == 1 and judged:  # what is said of the only part is said of the runs
        findings += [finding for finding in judged[0]["findings"] if finding not in findings]
    headline = _with_tables(_with_ranks(_headline(word, rows, judged, found, loop), rows, judged), word, loop)
    document = {
        "schema": SCHEMA,
        **sides,
        "verdict": word,
        "headline": _with_failures(headline, rows, loop),
        "first": first,
        "first_part": found.row["n"] if found and found.row else None,
        "first_origin": found.place if found and found.place and "causes" in found.place else None,
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


def _alone(rows: Sequence[JsonObject]) -> tuple[list[int], list[int]]:
    """The ranks that stand against none in some part, by side."""
    left, right = (sorted({rank for row in rows for rank in row["ranks_alone"][side]}) for side in ("left", "right"))
    return left, right


def _of_ranks(rows: Sequence[JsonObject], judged: Sequence[JsonObject], loop: JsonObject) -> list[JsonObject]:
    """What is to be said of ranks once, and not only in every part: which stand against none, and which have other numbers."""
    parts = sum(bool(row["ranks_alone"]["left"] or row["ranks_alone"]["right"]) for row in rows)
    said = [finding["evidence"] for document in judged for finding in document.get("findings", []) if finding["code"] == "ranks_shifted"]
    moved = [pair for evidence in said for pair in zip(evidence["left"], evidence["right"], strict=True)]
    known = any(finding["code"] == "ranks_shifted" for finding in loop.get("findings", []))
    found = [*ranks_alone(_alone(rows), parts), *(() if known else ranks_shifted(moved))]
    return [finding.document() for finding in found]


def _preconditions(loop: JsonObject, facts: tuple[SideFacts, SideFacts], stages: Sequence[StagePair]) -> list[JsonObject]:
    """Where train stands against inference: what the configurations say is not as such a comparison needs it."""
    if not crossed((facts[0].role, facts[1].role), stages):
        return []
    return [finding.document() for finding in what_fails(loop.get("preconditions", []))]


def _headline(word: str, rows: Sequence[JsonObject], judged: Sequence[JsonObject], found: First | None, loop: JsonObject) -> Text:
    compared = [row for row in rows if row["verdict"] in ("identical", "consistent")]
    apart = len(rows) - len(compared)
    if found is not None and found.table is not None:
        return _table_headline(found.document(), found.table)
    if len(rows) == 1 and judged and judged[0]["verdict"] == word:
        return _headline_of_one(judged[0]["headline"], word, loop)
    if found is not None:
        return _stage_headline(found.document(), loop)
    tables = _tables(loop)
    if word == "not_comparable":
        if not rows and not loop.get("error") and loop.get("preconditions"):
            return _settings_headline(loop.get("configurations", []))
        if not compared and judged:
            more = both(f"; so are all {len(rows)} parts", f"；全部 {len(rows)} 个部分都是如此") if len(rows) > 1 else both("", "")
            said: Text = judged[0]["headline"]
            return both(said["en"] + more["en"], said["zh"] + more["zh"])
        if not compared and tables:
            return both(
                f"Not comparable — of the runs only {counted(tables, 'key-data table')} could be compared, and no number in "
                f"{'it' if tables == 1 else 'them'} differs",
                f"无法比较 — 两次运行中只比较了 {tables} 个关键数据表，其中没有不同的数值",
            )
        if not compared:
            return both(
                "Not comparable — no part is on both sides, or none could be compared", "无法比较 — 没有两侧共有的部分，或都无法比较"
            )
        if not apart:  # the key data could not be compared
            return both(
                f"Not comparable — {counted(len(compared), 'part')} compared, nothing beyond noise",
                f"无法比较 — 比较了 {len(compared)} 个部分，没有超出噪声的差异",
            )
        return both(
            f"Not comparable — {apart} of {len(rows)} parts could not be compared; the other {len(compared)} "
            f"{'shows' if len(compared) == 1 else 'show'} nothing beyond noise",
            f"无法比较 — {len(rows)} 个部分中有 {apart} 个无法比较；其余 {len(compared)} 个没有超出噪声的差异",
        )
    word_said = {"identical": both("Identical", "完全一致"), "consistent": both("Consistent", "一致")}[word]
    others = both(f"; {apart} could not be compared", f"；{apart} 个部分无法比较") if apart else both("", "")
    tabled = counted(tables, "key-data table")
    if tables and not rows:
        return both(
            f"{word_said['en']} — {tabled} compared, no number differs",
            f"{word_said['zh']} — 比较了 {tables} 个关键数据表，没有不同的数值",
        )
    also = both(f" and {tabled}", f"和 {tables} 个关键数据表") if tables else both("", "")
    return both(
        f"{word_said['en']} — {counted(len(compared), 'part')}{also['en']} compared, nothing beyond noise{others['en']}",
        f"{word_said['zh']} — 比较了 {len(compared)} 个部分{also['zh']}，没有超出噪声的差异{others['zh']}",
    )


def _tables(loop: JsonObject) -> int:
    """How many key-data tables there are, where any of them could be compared."""
    count: int = loop.get("tables", 0) if loop.get("verdict") else 0
    return count


def _settings_headline(changed: Sequence[JsonObject]) -> Text:
    """Of configurations alone."""
    if not changed:
        return both("Not comparable — no dumps, configurations alone: no setting differs", "无法比较 — 没有 dump，只有配置：没有不同的设置")
    count, matter = len(changed), sum(row["matters"] for row in changed)
    settings = "1 setting differs" if count == 1 else f"{count} settings differ"
    matters = f"{matter} of them {'matters' if matter == 1 else 'matter'}"
    if count == 1:
        matters = "it matters" if matter else "it does not matter"
    return both(
        f"Not comparable — no dumps, configurations alone: {settings}, {matters}",
        f"无法比较 — 没有 dump，只有配置：{count} 项设置不同，其中 {matter} 项影响一致性",
    )


def _table_headline(first: JsonObject, table: JsonObject) -> Text:
    since, meaning = table["since"], table["meaning"]
    inside = both("", "")
    if first["module"]:
        module = short(first["module"])
        inside = both(f"; inside {first['stage']}: {module}", f"；{first['stage']} 内首先是 {module}")
    return both(
        f"First difference: {first['key_data']} {since['en']} — {meaning['en']}{inside['en']}",
        f"首个差异：{first['key_data']} {since['zh']}不同 — {meaning['zh']}{inside['zh']}",
    )


def _headline_of_one(headline: Text, word: str, loop: JsonObject) -> Text:
    """Where the runs have one part, what is said of it, and of the key data in a clause."""
    tables = _tables(loop)
    then = _then(loop)
    if word in ("identical", "consistent") and tables:
        then = both(f"; {counted(tables, 'key-data table')} compared, no number differs", f"；{tables} 个关键数据表中没有不同的数值")
    return both(headline["en"] + then["en"], headline["zh"] + then["zh"])


def _then(loop: JsonObject) -> Text:
    """The first table that differs, where something else happened before it."""
    table = loop.get("first")
    if table is None:
        return both("", "")
    return both(f"; then {table['key']} {table['since']['en']}", f"；其后 {table['key']} {table['since']['zh']}不同")


def _stage_headline(first: JsonObject, loop: JsonObject) -> Text:
    stage, step, module, then = first["stage"], first["step"], short(first["module"] or "(root)"), _then(loop)
    when = both("", "") if step is None else both(f"step {step}", f"第 {step} 步")
    return both(
        "First divergence: " + ", ".join(word for word in (stage, when["en"], module) if word) + then["en"],
        "首个差异：" + "，".join(word for word in (stage, when["zh"], module) if word) + then["zh"],
    )


def _with_ranks(headline: Text, rows: Sequence[JsonObject], judged: Sequence[JsonObject]) -> Text:
    if len(rows) == 1 and judged and headline["en"].startswith(judged[0]["headline"]["en"]):  # it is said already
        return headline
    tail = ranks_alone_words(_alone(rows))
    return both(headline["en"] + tail["en"], headline["zh"] + tail["zh"])


def _with_tables(headline: Text, word: str, loop: JsonObject) -> Text:
    """The headline with the tables that it does not speak for: what is said above it is said without them."""
    said = loop.get("beside")
    if said is None or word == "diverged":
        return headline
    return both(f"{headline['en']}; key data: {said['en']}", f"{headline['zh']}；关键数据：{said['zh']}")


def _with_failures(headline: Text, rows: Sequence[JsonObject], loop: JsonObject) -> Text:
    """The headline with what failed: what is said above it is said without that."""
    failed = [row for row in rows if row["state"] == "failed"]
    if loop.get("error"):
        headline = both(f"{headline['en']}; key data could not be compared", f"{headline['zh']}；关键数据未能比较")
    if not failed:
        return headline
    if len(failed) == sum(not row["verdict"].endswith("_only") for row in rows):
        every = both(
            "the only part failed" if len(failed) == 1 else f"all {len(failed)} parts failed",
            "唯一的部分失败" if len(failed) == 1 else f"全部 {len(failed)} 个部分失败",
        )
        return both(f"{headline['en']}; {every['en']}, so that no module is known", f"{headline['zh']}；{every['zh']}，无法给出模块")
    more = len(failed) - NAMED_FAILURES
    places = [_place(row) for row in failed[:NAMED_FAILURES]]
    named = both(", ".join(place["en"] for place in places), "、".join(place["zh"] for place in places))
    rest = both(f" and {more} more", f" 等 {len(failed)} 个") if more > 0 else both("", "")
    return both(
        f"{headline['en']}; {counted(len(failed), 'part')} failed: {named['en']}{rest['en']}",
        f"{headline['zh']}；{len(failed)} 个部分失败：{named['zh']}{rest['zh']}",
    )


def _place(row: JsonObject) -> Text:
    step = both(f"step {row['step']}", f"第 {row['step']} 步") if row["step"] is not None else both("", "")
    stage = row["stage"] or ""
    return both(f"{stage} {step['en']}".strip() or f"part {row['n']}", f"{stage} {step['zh']}".strip() or f"第 {row['n']} 个部分")
