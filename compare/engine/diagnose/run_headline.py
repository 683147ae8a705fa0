"""The headline of a run verdict: what happened first, else what was compared, and what failed."""

from __future__ import annotations

from collections.abc import Sequence

from compare.engine.diagnose.rank_findings import ranks_alone_words
from compare.engine.diagnose.run_alone import parts_alone_words, steps_apart_words
from compare.engine.diagnose.run_first import First
from compare.engine.diagnose.words import Text, both, counted, short
from compare.engine.model import JsonObject

AGREEING = {"identical": both("Identical", "完全一致"), "consistent": both("Consistent", "一致")}
NAMED_FAILURES = 3  # how many failed parts the headline names; the rows have them all


def run_headline(
    word: str,
    rows: Sequence[JsonObject],
    judged: Sequence[JsonObject],
    found: First | None,
    loop: JsonObject,
    unknown: Sequence[JsonObject] = (),
) -> Text:
    """``word``: the verdict; ``judged``: the documents of the parts that were compared; ``unknown``: the rows of those that were not, and
    come before what is called the first (``run_first.unknown_before``)."""
    headline = _with_ranks(_headline(word, rows, judged, found, loop), rows, judged)
    headline = _with_tables(_with_parts(headline, word, rows), word, loop)
    return _with_unknown(_with_failures(headline, rows, loop), unknown)


def _headline(word: str, rows: Sequence[JsonObject], judged: Sequence[JsonObject], found: First | None, loop: JsonObject) -> Text:
    compared = [row for row in rows if row["verdict"] in ("identical", "consistent")]
    unlike = sum(row["verdict"] == "not_comparable" for row in rows)
    if found is not None and found.table is not None:
        return _table_headline(found.document(), found.table)
    alike = {word, judged[0]["verdict"]} if judged else set()
    if len(rows) == 1 and (len(alike) == 1 or alike == {"identical", "consistent"}):
        return _headline_of_one(judged[0]["headline"], word, loop)
    if found is not None:
        return _stage_headline(found.document(), loop)
    tables = _tables(loop)
    if word == "not_comparable":
        if not rows and not loop.get("error") and loop.get("preconditions"):
            return _settings_headline(loop.get("configurations", []))
        if not compared and judged:
            more = both(f"; so are all {unlike} parts", f"；全部 {unlike} 个部分都是如此") if unlike > 1 else both("", "")
            said: Text = judged[0]["headline"]
            return both(said["en"] + more["en"], said["zh"] + more["zh"])
        if not compared and tables:
            return both(
                f"Not comparable — of the runs only {counted(tables, 'key-data table')} could be compared, and no number in "
                f"{'it' if tables == 1 else 'them'} differs",
                f"无法比较 — 两次运行中只比较了 {tables} 个关键数据表，其中没有不同的数值",
            )
        apart = steps_apart_words(rows)
        if apart is not None:
            return both(f"Not comparable — {apart['en']}", f"无法比较 — {apart['zh']}")
        if not compared:
            return both(
                "Not comparable — no part is on both sides, or none could be compared", "无法比较 — 没有两侧共有的部分，或都无法比较"
            )
        if not unlike:  # the key data could not be compared
            return both(
                f"Not comparable — {counted(len(compared), 'part')} compared, nothing beyond noise",
                f"无法比较 — 比较了 {len(compared)} 个部分，没有超出噪声的差异",
            )
        return both(
            f"Not comparable — {unlike} of {unlike + len(compared)} parts could not be compared; the other {len(compared)} "
            f"{'shows' if len(compared) == 1 else 'show'} nothing beyond noise",
            f"无法比较 — {unlike + len(compared)} 个部分中有 {unlike} 个无法比较；其余 {len(compared)} 个没有超出噪声的差异",
        )
    word_said = AGREEING[word]
    tabled = counted(tables, "key-data table")
    if tables and not rows:
        return both(
            f"{word_said['en']} — {tabled} compared, no number differs",
            f"{word_said['zh']} — 比较了 {tables} 个关键数据表，没有不同的数值",
        )
    also = both(f" and {tabled}", f"和 {tables} 个关键数据表") if tables else both("", "")
    return both(
        f"{word_said['en']} — {counted(len(compared), 'part')}{also['en']} compared, nothing beyond noise",
        f"{word_said['zh']} — 比较了 {len(compared)} 个部分{also['zh']}，没有超出噪声的差异",
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
    if word in AGREEING and tables:
        then = both(f"; {counted(tables, 'key-data table')} compared, no number differs", f"；{tables} 个关键数据表中没有不同的数值")
    if word in AGREEING:  # the part may be identical where the runs are not: one holds tables that the other lacks
        rest = {language: headline[language].partition(" — ")[2] or headline[language] for language in ("en", "zh")}
        headline = both(f"{AGREEING[word]['en']} — {rest['en']}", f"{AGREEING[word]['zh']} — {rest['zh']}")
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
    tail = ranks_alone_words(alone_in(rows))
    return both(headline["en"] + tail["en"], headline["zh"] + tail["zh"])


def _with_parts(headline: Text, word: str, rows: Sequence[JsonObject]) -> Text:
    """The headline with the parts that it does not speak for: those on one side."""
    said = parts_alone_words(rows)
    if said is None or word == "diverged" or steps_apart_words(rows) is not None:
        return headline
    return both(f"{headline['en']}; {said['en']}", f"{headline['zh']}；{said['zh']}")


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
    named = named_places(failed)
    return both(
        f"{headline['en']}; {counted(len(failed), 'part')} failed: {named['en']}",
        f"{headline['zh']}；{len(failed)} 个部分失败：{named['zh']}",
    )


def _with_unknown(headline: Text, unknown: Sequence[JsonObject]) -> Text:
    """The headline with the doubt that what it calls the first is so."""
    if not unknown:
        return headline
    count, what = len(unknown), unknown_words(unknown)
    which = "an earlier part that" if count == 1 else f"one of {count} earlier parts that"
    return both(
        f"{headline['en']}; the first difference may lie in {which} {what['en']}",
        f"{headline['zh']}；更早的部分中有 {count} 个{what['zh']}，首个差异可能在其中",
    )


def unknown_words(rows: Sequence[JsonObject]) -> Text:
    """What is said of parts that are not known."""
    return both("failed", "失败") if all(row["state"] == "failed" for row in rows) else both("could not be compared", "无法比较")


def named_places(rows: Sequence[JsonObject]) -> Text:
    """The first few by stage and step: ``actor_update step 1, ref step 2 and 3 more``."""
    more = len(rows) - NAMED_FAILURES
    places = [_place(row) for row in rows[:NAMED_FAILURES]]
    rest = both(f" and {more} more", f" 等 {len(rows)} 个") if more > 0 else both("", "")
    return both(", ".join(place["en"] for place in places) + rest["en"], "、".join(place["zh"] for place in places) + rest["zh"])


def _place(row: JsonObject) -> Text:
    step = both(f"step {row['step']}", f"第 {row['step']} 步") if row["step"] is not None else both("", "")
    stage = row["stage"] or ""
    return both(f"{stage} {step['en']}".strip() or f"part {row['n'] + 1}", f"{stage} {step['zh']}".strip() or f"第 {row['n'] + 1} 个部分")


def alone_in(rows: Sequence[JsonObject]) -> tuple[list[int], list[int]]:
    """The ranks that stand against none in some part, by side."""
    left, right = (sorted({rank for row in rows for rank in row["ranks_alone"][side]}) for side in ("left", "right"))
    return left, right
