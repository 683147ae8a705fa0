"""How dumps, and forward passes in them, came to stand against each other, in words: by which tokens, and why some have no partner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compare.engine.align.passes import Passes
from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.words import Text, both, counted, number, ranges
from compare.engine.model import JsonObject
from compare.engine.parts.pairing import SIDES, Pairing, Part, PartKey, Shared, Unpaired
from compare.engine.parts.tokens import Agreement, Tokens

MOST_NAMED = 3  # parts that a sentence names
MOST_LISTED = 50  # parts in the evidence
SIDES_ZH = {"left": "左侧", "right": "右侧"}

AGAINST: dict[Agreement, Text] = {
    Agreement.COUNT: both("another number of tokens", "词元数不同"),
    Agreement.IDS: both("other ids", "词元 id 的范围不同"),
    Agreement.CHECKSUM: both("another checksum of the ids", "词元 id 的校验和不同"),
    Agreement.EMBEDDING: both("another embedding", "嵌入输出不同"),
    Agreement.POSITIONS: both("other positions", "位置编号不同"),
    Agreement.UNKNOWN: both("nothing but the number of tokens is known", "除词元数外没有可比的信息"),
}


def part_reason(part: Part) -> JsonObject | None:
    """Why the two dumps of a part stand against each other; None where a side does not hold it."""
    if part.reason is None:
        return None
    text = _by_tokens(part.shared) if part.shared is not None else REASONS[part.reason]
    evidence = {} if part.shared is None else _evidence(part.shared)
    return {"code": part.reason, "text": text, "evidence": evidence}


REASONS: dict[str, Text] = {
    "step": both("the same step", "步号相同"),
    "nearest": both("one side holds no other step", "一侧没有其他步"),
    "chosen": both("chosen with the option step", "由选项 step 指定"),
    "requests": both("the same request, by the request logs", "依据请求日志，为同一请求"),
}


def pairing_findings(part: Part, pairing: Pairing | None) -> list[Finding]:
    """What the verdict of a part says of its pairing. ``pairing``: where it is the only part, so that nobody else says it."""
    found = []
    if part.shared is not None:
        text = _by_tokens(part.shared)
        found.append(
            Finding(
                "paired_by_tokens",
                "info",
                both(
                    f"Steps are counted differently on the two sides, so these dumps were paired by their tokens: {text['en']}. Another "
                    "pair is chosen with the option step",
                    f"两侧步的计数方式不同，因此按词元配对：{text['zh']}。可用选项 step 另选",
                ),
                evidence=_evidence(part.shared),
            )
        )
    return found + list(unpaired_findings(pairing))


def unpaired_findings(pairing: Pairing | None) -> Iterator[Finding]:
    """One finding a kind, however many dumps it is about."""
    unpaired = () if pairing is None else pairing.unpaired
    for code, say, severity in (("several_fit", _several, "warning"), ("no_same_tokens", _nothing, "warning"), ("decode", _decode, "info")):
        rows = [row for row in unpaired if row.code == code]
        if rows:
            yield Finding(
                FINDING_CODES[code], severity, say(rows), evidence={"count": len(rows), "parts": [_row(row) for row in rows[:MOST_LISTED]]}
            )


FINDING_CODES = {"several_fit": "several_same_tokens", "no_same_tokens": "no_same_tokens", "decode": "decode_not_compared"}


def passes_findings(passes: Passes | None) -> Iterator[Finding]:
    """Of several passes in one dump: which of them were compared with which, and which with none."""
    if passes is None:
        return
    train, infer = SIDES[passes.train], SIDES[1 - passes.train]
    calls: dict[int, list[int]] = {}
    for call, (to, _) in sorted(passes.met.items()):
        calls.setdefault(to, []).append(call)
    if not passes.by_number:
        told = [_met(passes, to, held) for to, held in calls.items()]
        yield Finding(
            "calls_by_tokens",
            "info",
            both(
                f"Forward calls were paired by their tokens, for those of one number were fed other tokens on the two sides ({train} / "
                f"{infer}): {'; '.join(text['en'] for text in told[:MOST_NAMED])}{'; …' if len(told) > MOST_NAMED else ''}",
                f"同一序号的前向调用在两侧的词元不同，因此按词元配对（{SIDES_ZH[train]} / {SIDES_ZH[infer]}）："
                f"{'；'.join(text['zh'] for text in told[:MOST_NAMED])}{'；…' if len(told) > MOST_NAMED else ''}",
            ),
            evidence={"calls": [[to, held] for to, held in calls.items()][:MOST_LISTED]},
        )
    alone = [call for call in range(len(passes.infers)) if call not in passes.met]
    least = min((passes.infers[call].count for call in range(len(passes.infers))), default=0)
    decode = [call for call in alone if passes.infers[call].count == least]
    if decode:
        yield _decode_calls(infer, decode, least)


def _met(passes: Passes, to: int, calls: Sequence[int]) -> Text:
    fed = _ids(passes.trains[to])
    chunks = len(calls) > 1
    return both(
        f"call {to} / {_ranges(calls)} ({fed['en']}{f', prefilled in {len(calls)} chunks' if chunks else ''})",
        f"第 {to} 次 / 第 {_ranges(calls)} 次（{fed['zh']}{f'，分 {len(calls)} 块预填充' if chunks else ''}）",
    )


def _decode_calls(side: str, calls: Sequence[int], count: int) -> Finding:
    several = len(calls) > 1
    return Finding(
        "decode_not_compared",
        "info",
        both(
            f"{'Calls' if several else 'Call'} {_ranges(calls)} of the {side} side saw {counted(count, 'token')}"
            f"{' each' if several else ''}: decode or warm-up. Statistics of single rows cannot be compared with those of a training pass "
            "over the whole sequence",
            f"{SIDES_ZH[side]}第 {_ranges(calls)} 次前向{'各' if several else ''}只有 {count} 个词元：属于 decode 或预热，"
            "单行的统计量无法与训练端整段序列的统计量比较",
        ),
        evidence={"side": side, "calls": list(calls[:MOST_LISTED]), "count": len(calls), "tokens": count},
    )


def _ranges(numbers: Sequence[int]) -> str:
    """0, 2–4"""
    shown = ranges(numbers)
    return ", ".join(shown[:8]) + (", …" if len(shown) > 8 else "")


def _by_tokens(shared: Shared) -> Text:
    left, right = shared.left, shared.right
    en, zh = [_ids(left)["en"]], [_ids(left)["zh"]]
    if left.embedding is not None and right.embedding is not None and left.elements == right.elements:
        ends = left.embedding[-1], right.embedding[-1]
        norms = number(ends[0]) if ends[0] == ends[1] else f"{number(ends[0])} / {number(ends[1])}"
        en.append(f"embedding Norm {norms}")
        zh.append(f"嵌入 Norm {norms}")
    if shared.exact:
        en.append("the same checksum of the ids")
        zh.append("词元 id 的校验和相同")
    if max(left.pieces, right.pieces) > 1:
        pieces = max(left.pieces, right.pieces)
        en.append(f"prefilled in {pieces} chunks" + (f" (steps {_numbers(shared.steps)})" if len(shared.steps) > 1 else ""))
        zh.append(f"分 {pieces} 块预填充" + (f"（第 {_numbers(shared.steps, '、')} 步）" if len(shared.steps) > 1 else ""))
    return both(", ".join(en), "，".join(zh))


def _numbers(steps: Sequence[int | None], comma: str = ", ") -> str:
    shown = [str(step) for step in steps if step is not None]
    return comma.join(shown[:8]) + (" …" if len(shown) > 8 else "")


def _ids(tokens: Tokens) -> Text:
    count = counted(tokens.count, "token")
    if tokens.least is None or tokens.most is None:
        return both(count, f"{tokens.count} 个词元")
    return both(f"{count}, ids {tokens.least} to {tokens.most}", f"{tokens.count} 个词元（id {tokens.least} 至 {tokens.most}）")


def _fingerprint(tokens: Tokens) -> Text:
    ids = _ids(tokens)
    if tokens.embedding is None:
        return ids
    high, low, norm = (number(value) for value in tokens.embedding)
    return both(f"{ids['en']}, embedding Max {high}, Min {low}, Norm {norm}", f"{ids['zh']}，嵌入 Max {high}、Min {low}、Norm {norm}")


def _place(key: PartKey) -> Text:
    stage, step = key
    at = both("", "") if step is None else both(f"step {step}", f"第 {step} 步")
    return both(f"{stage or ''} {at['en']}".strip() or "the dump", f"{stage or ''} {at['zh']}".strip() or "该数据")


def _places(keys: Sequence[PartKey]) -> Text:
    shown = [_place(key) for key in keys[:MOST_NAMED]]
    more = len(keys) - len(shown)
    return both(
        ", ".join(place["en"] for place in shown) + (f" and {more} more" if more > 0 else ""),
        "、".join(place["zh"] for place in shown) + (f" 等 {len(keys)} 个" if more > 0 else ""),
    )


def _several(rows: Sequence[Unpaired]) -> Text:
    row = rows[0]
    other = SIDES[1 - SIDES.index(row.side)]
    place, fitting = _place(row.keys[0]), _places([key for key, _ in row.others])
    fed = _ids(row.tokens) if row.tokens is not None else both("", "")
    steps = (row.keys[0][1], row.others[0][0][1])
    option = "" if None in steps else f"{steps[0]}:{steps[1]}" if row.side == "left" else f"{steps[1]}:{steps[0]}"
    more = len(rows) - 1
    return both(
        f"{place['en']} of the {row.side} side ({fed['en']}) was not paired by its tokens: nothing decides between several of the {other} "
        f"side or of its own that fit equally well ({fitting['en']}){f'; so with {more} more' if more else ''}. Choose one"
        + (f", for example with the option step {option}" if option else ""),
        f"{SIDES_ZH[row.side]}的{place['zh']}（{fed['zh']}）没有按词元配对：有多个同样符合（{SIDES_ZH[other]}的{fitting['zh']}），无法区分"
        f"{f'；另有 {more} 个也是如此' if more else ''}。请自行选择" + (f"，例如选项 step {option}" if option else ""),
    )


def _nothing(rows: Sequence[Unpaired]) -> Text:
    row = rows[0]
    other = SIDES[1 - SIDES.index(row.side)]
    place, places = _place(row.keys[0]), _places([key for one in rows for key in one.keys])
    if row.tokens is None:
        return both(
            f"No partner was found for {places['en']} of the {row.side} side: no embedding of token ids was dumped there",
            f"{SIDES_ZH[row.side]}的{places['zh']}没有找到对应：数据中没有词元 id 的嵌入",
        )
    fed = _fingerprint(row.tokens)
    if not row.others:
        return both(
            f"No partner was found for {places['en']} of the {row.side} side ({fed['en']}): no dump of the {other} side says which tokens "
            "it was fed",
            f"{SIDES_ZH[row.side]}的{places['zh']}没有找到对应（{fed['zh']}）：{SIDES_ZH[other]}的数据都没有词元信息",
        )
    (key, tokens), against = row.others[0], AGAINST[row.against]
    closest, held = _place(key), _fingerprint(tokens)
    return both(
        f"No dump of the {other} side was fed the same tokens as {places['en']} of the {row.side} side. {place['en']}: {fed['en']}; "
        f"closest is {closest['en']}: {held['en']} ({against['en']})",
        f"{SIDES_ZH[other]}没有与{SIDES_ZH[row.side]}的{places['zh']}输入相同词元的数据。{place['zh']}：{fed['zh']}；最接近的是{closest['zh']}："
        f"{held['zh']}（{against['zh']}）",
    )


def _decode(rows: Sequence[Unpaired]) -> Text:
    row = rows[0]
    count = row.tokens.count if row.tokens is not None else 1
    places = _places(row.keys)
    several = len(row.keys) > 1
    return both(
        f"{places['en']} of the {row.side} side saw {counted(count, 'token')}{' each' if several else ''}: decode or warm-up. "
        "Statistics of single rows cannot be compared with those of a training pass over the whole sequence",
        f"{SIDES_ZH[row.side]}的{places['zh']}{'各' if several else ''}只有 {count} 个词元：属于 decode 或预热，"
        "单行的统计量无法与训练端整段序列的统计量比较",
    )


def _evidence(shared: Shared) -> JsonObject:
    return {"left": shared.left.document(), "right": shared.right.document(), "exact": shared.exact, "steps": list(shared.steps)}


def _row(row: Unpaired) -> JsonObject:
    return {
        "side": row.side,
        "parts": [{"stage": stage, "step": step} for stage, step in row.keys[:MOST_LISTED]],
        "tokens": None if row.tokens is None else row.tokens.document(),
        "others": [{"stage": key[0], "step": key[1], "tokens": tokens.document()} for key, tokens in row.others[:MOST_LISTED]],
        "against": str(row.against) if row.code == "no_same_tokens" else None,
    }
