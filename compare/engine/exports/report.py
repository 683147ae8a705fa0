"""What a report says, as blocks: verdict, premises, origins with evidence and causes, layers, findings, mapping, what was not compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compare.engine.diagnose.run_chain import settings_words
from compare.engine.diagnose.words import number, percent, short
from compare.engine.exports.blocks import Block, Bullets, Chain, Code, Grid, Heading, Line, Mark, Paragraph, Span, Verdict
from compare.engine.exports.finished import Finished, FinishedPart
from compare.engine.exports.loop_sections import LoopSections, as_float
from compare.engine.exports.mapping import used_mapping
from compare.engine.exports.words import Language
from compare.engine.mapping.write import by_layer
from compare.engine.model import JsonObject

MOST_LAYERS = 400
MOST_PARTS = 60  # described one by one
MOST_PAIRS = 120
MOST_NAMES = 4
SIGNS = {"diverged": ("▲", "bad"), "not_comparable": ("∅", "bad"), "consistent": ("✓", "good"), "identical": ("✓", "good")}
GRADES = {"equal": "good", "rounding": "good", "noise": "good", "diverged": "bad", "incomparable": "quiet"}
EVIDENCE = {"norm_rel": percent, "max_rel": percent, "mean_over_rms": percent, "ulps": number, "cosine": number, "rel_l2": percent}


def report(finished: Finished, language: Language) -> list[Block]:
    """The report of a comparison; of a run verdict that of the whole run, with a section for each part that has something to say."""
    return list(_Report(language).blocks(finished))


class _Report(LoopSections):
    def blocks(self, finished: Finished) -> Iterator[Block]:
        document = finished.document
        yield Heading(1, f"{document['left']['name']} ↔ {document['right']['name']}")
        yield Verdict(self._verdict(document["verdict"]), self._sentence(document))
        if finished.several:
            yield from self._run(finished)
        else:
            part = next(finished.judged())
            yield Heading(2, self.say("sides"))
            yield self._sides(document)
            yield from self._part(part, 2)
            yield from self.configurations(document.get("configurations") or [])
            yield from self.preconditions(document.get("preconditions") or [])
        yield from self._mapping(finished)
        yield Paragraph([self.say("footer")])

    def _verdict(self, code: str) -> Mark:
        sign, kind = SIGNS.get(code, ("", "quiet"))
        return Mark(f"{sign} {self.say(code)}".strip(), kind)

    def _sentence(self, document: JsonObject) -> str:
        """The headline without the verdict's word, which stands before it as a mark."""
        headline: str = document["headline"][self.language]
        word, dash, rest = headline.partition(" — ")
        return rest if dash and document["verdict"] != "diverged" and self.say(document["verdict"]) in word else headline

    def _grade(self, code: str) -> Mark:
        return Mark(self.say("grade_diverged" if code == "diverged" else code), GRADES.get(code, "quiet"))

    # --- one part -----------------------------------------------------------------------------------------------------------------------

    def _sides(self, document: JsonObject) -> Grid:
        sides = [document[name] for name in ("left", "right")]
        rows: list[list[Line]] = [
            [[self.say("name")], *([Code(side["name"])] for side in sides)],
            [[self.say("framework")], *([str(side.get("framework") or "–")] for side in sides)],
            [[self.say("data")], *([" · ".join(filter(None, (side.get("task"), side.get("level"))))] for side in sides)],
            [[self.say("place")], *([self._place(side.get("stage"), side.get("step"))] for side in sides)],
            [[self.say("ranks")], *([", ".join(map(str, side.get("ranks") or [])) or "–"] for side in sides)],
            [[self.say("records")], *([str(side.get("records", "–"))] for side in sides)],
        ]
        roles = [self.say(side["role"] if side["role"] in ("train", "infer") else "unknown_role") for side in sides]
        named = [f"{self.say(side)}{self.say('colon')}{role}" for side, role in zip(("left", "right"), roles, strict=True)]
        return Grid([self.say("what"), *named], rows)

    def _place(self, stage: str | None, step: int | None) -> str:
        pieces = [stage] if stage else []
        if step is not None:
            pieces.append(self.say("step_number", number=step))
        return self.say("comma").join(pieces) or "–"

    def _part(self, part: FinishedPart, level: int) -> Iterator[Block]:
        document = part.document or {}
        yield Heading(level, self.say("premises"))
        yield self._premises(document["premises"])
        yield Heading(level, self.say("origins"))
        yield from self._origins(document, level + 1)
        if document["layers"]:
            yield Heading(level, self.say("layers"))
            yield from self._layers(document["layers"])
        yield from self._findings(document["findings"], level)
        yield Heading(level, self.say("not_compared"))
        yield from self._not_compared(part, document)
        yield Heading(level, self.say("counts"))
        counts = document["counts"]
        names = ("pairs", "equal", "rounding", "noise", "diverged", "incomparable", "unmatched_left", "unmatched_right")
        header = [self.say("grade_diverged" if name == "diverged" else name) for name in names]
        yield Grid(header, [[[str(counts[name])] for name in names]], frozenset(range(len(names))))

    def _findings(self, findings: Sequence[JsonObject], level: int) -> Iterator[Block]:
        if findings:
            yield Heading(level, self.say("findings"))
            yield Bullets([[Mark(self.say(f["severity"]), "quiet"), f" {f['text'][self.language]}"] for f in findings])

    def _premises(self, premises: Sequence[JsonObject]) -> Grid:
        marks = {"ok": "good", "failed": "bad", "unknown": "quiet"}
        rows: list[list[Line]] = [
            [[self.say(one["code"])], [Mark(self.say(one["state"]), marks[one["state"]])], [self._detail(one["detail"])]]
            for one in premises
        ]
        return Grid([self.say("premise"), self.say("state"), self.say("detail")], rows)

    def _detail(self, detail: JsonObject) -> str:
        """The numbers behind a premise: ``number 12 / 12, Min 3 / 3``."""
        pieces = []
        for name, value in detail.items():
            said = self.say(f"detail_{name}").removeprefix("detail_")
            if isinstance(value, list) and len(value) == 2 and not any(isinstance(one, str | dict | list) for one in value):
                pieces.append(f"{said} {number(as_float(value[0]))} / {number(as_float(value[1]))}")
            elif isinstance(value, int | float | str):
                pieces.append(f"{said} {value}")
            elif isinstance(value, list) and value:
                pieces.append(f"{said} {', '.join(map(str, value[:MOST_NAMES]))}")
        return self.say("comma").join(pieces) or "–"

    def _origins(self, document: JsonObject, level: int) -> Iterator[Block]:
        first = document["first_difference"]
        if first is not None:
            where: Line = [
                f"{self.say('first_difference')}: ",
                Code(f"{first['module']} {first['slot']}"),
                " ",
                self._grade(first["grade"]),
            ]
            yield Paragraph(where)
        if not document["origins"]:
            yield Paragraph([self.say("no_origins")])
        for place, origin in enumerate(document["origins"], 1):
            yield Heading(level, f"{place}. {short(origin['module'])}")
            yield from self._origin(origin)

    def _origin(self, origin: JsonObject) -> Iterator[Block]:
        rows: list[list[Line]] = [
            [[self.say("module")], [Code(origin["module"])]],
            [[self.say("kind")], [self.say(_kind(origin))]],
            [[self.say("slot")], [Code(origin["slot"]), f" · {self.say(origin['direction'])}"]],
            [[self.say("order")], [f"{origin['order'] + 1} / {origin['of']}"]],
            [[self.say("confidence")], [self.say(origin["confidence"])]],
        ]
        rows += [[[self.say(name)], [Code(origin[name])]] for name in ("after", "before") if origin[name]]
        place = self._place(origin.get("stage"), origin.get("step"))
        if origin.get("rank") is not None:
            place += self.say("comma") + self.say("rank_number", number=origin["rank"])
        rows.append([[self.say("place")], [place]])
        rows += [[[self.say(side)], _codes(origin[side])] for side in ("left", "right") if origin[side]]
        evidence = origin["evidence"]
        elements = evidence.get("rel_l2") is not None
        rows += [
            [[self.say("element_ulps" if name == "ulps" and elements else name)], [shown(as_float(evidence[name]))]]
            for name, shown in EVIDENCE.items()
            if evidence.get(name) is not None
        ]
        if evidence.get("checksums"):
            rows.append([[self.say("checksums")], [Code(" / ".join(evidence["checksums"]))]])
        yield Grid([self.say("what"), self.say("evidence")], rows)
        if not origin["causes"]:
            yield Paragraph([self.say("no_causes")])
            return
        yield Paragraph([self.say("causes")])
        yield Bullets([[f"{cause['text'][self.language]} ({cause['score']:.2f})"] for cause in origin["causes"]])

    def _layers(self, layers: Sequence[JsonObject]) -> Iterator[Block]:
        tensors = any(row.get("rel_l2") is not None for row in layers)
        numbers = ("layer", "left_norm", "right_norm", "norm_rel", "ulps", *(("rel_l2",) if tensors else ()))
        header = [self.say(name) for name in (*numbers, "grade", "compared")]
        rows: list[list[Line]] = [
            [
                [str(row["index"])],
                [number(as_float(row["left_norm"]))],
                [number(as_float(row["right_norm"]))],
                [percent(as_float(row["norm_rel"]))],
                [number(as_float(row["ulps"]))],
                *([[percent(as_float(row.get("rel_l2")))]] if tensors else []),
                [self._grade(row["grade"])],
                self._compared(str(row["compared"] or "")),
            ]
            for row in layers[:MOST_LAYERS]
        ]
        yield Grid(header, rows, frozenset(range(len(numbers))))
        if len(layers) > MOST_LAYERS:
            yield Paragraph([self.say("more", count=len(layers) - MOST_LAYERS)])

    def _compared(self, place: str) -> Line:
        """What stands for a layer's output: a slot's name, or ``residual stream:`` and where each side shows it."""
        stream, _, places = place.rpartition("residual stream: ")
        if not stream and places == place:
            return [Code(place)]
        spans: list[Span] = [f"{self.say('residual_stream')}{self.say('colon')}"]
        for index, one in enumerate(places.split(", ")):
            side, _, slot = one.partition(" ")
            spans += [self.say("comma") if index else "", f"{self.say(side)} ", Code(slot)]
        return [span for span in spans if span != ""]

    def _not_compared(self, part: FinishedPart, document: JsonObject) -> Iterator[Block]:
        coverage = document["coverage"]
        header = [self.say(name) for name in ("side", "records", "matched", "explained")]
        sides = ("left", "right")
        yield Grid(
            header,
            [[[self.say(s)], *([str(coverage[s][n])] for n in ("records", "matched", "explained"))] for s in sides],
            frozenset({1, 2, 3}),
        )
        rows = [
            [[self.say(side)], [text], [str(count)], _codes(names, count)] for side, text, count, names in _unmatched(part, self.language)
        ]
        if not rows:
            yield Paragraph([self.say("nothing_left")])
            return
        yield Grid([self.say(name) for name in ("side", "reason", "count", "modules")], rows, frozenset({2}))

    # --- several parts ------------------------------------------------------------------------------------------------------------------

    def _run(self, finished: Finished) -> Iterator[Block]:
        document = finished.document
        chain = list(self._chain(finished))
        if chain:
            yield Heading(2, self.say("chain"))
            yield Chain([(name[:1].upper() + name[1:], line) for name, line in chain])
        yield from self._findings(document.get("findings") or [], 2)
        yield from self.configurations(document.get("configurations") or [])
        yield from self.preconditions(document.get("preconditions") or [])
        yield from self.key_data(document.get("key_data") or [], document.get("findings") or [])
        yield from self.drift(document.get("drift") or [])
        yield from self.checks(document.get("checks") or [])
        if finished.parts:
            yield Heading(2, self.say("parts"))
            header = [self.say(name) for name in ("part", "stage", "step", "ranks", "verdict", "where")]
            yield Grid(header, [self._part_row(part) for part in finished.parts], frozenset({0, 2}))
        told = [part for part in finished.judged() if part.document and part.document["verdict"] in ("diverged", "not_comparable")]
        told = (told or list(finished.judged())[:1])[:MOST_PARTS]
        for part in told:
            row = part.row
            yield Heading(
                2, f"{self.say('part')} {part.n + 1}{self.say('colon')}{self._place(row['stage'], row['step'])}", f"part-{part.n}"
            )
            yield Verdict(self._verdict(str(row["verdict"])), self._sentence(part.document or {}))
            yield from self._part(part, 3)
        if len(finished.parts) > len(told):
            yield Paragraph([self.say("parts_elsewhere", count=len(finished.parts) - len(told))])

    def _chain(self, finished: Finished) -> Iterator[tuple[str, Line]]:
        """Whatever members the run verdict has, from the outside in."""
        document = finished.document
        first = document.get("first") or {}
        settings = settings_words(document)
        if settings is not None:
            yield self.say("configuration"), [settings[self.language]]
        if first.get("key_data"):
            yield self.say("key_data"), [Code(str(first["key_data"]))]
        if first.get("stage") or first.get("step") is not None:
            agrees = first.get("stage") and document.get("first_part", first) is None
            yield self.say("stage"), [self._place(first.get("stage"), first.get("step")) + (self.say("stage_agrees") if agrees else "")]
        if first.get("rank") is not None:
            yield self.say("rank"), [str(first["rank"])]
        if first.get("module"):
            yield self.say("module"), [Code(first["module"])]
            causes = (document.get("first_origin") or {}).get("causes") or []
            if causes:
                yield self.say("cause"), [causes[0]["text"][self.language]]

    def _part_row(self, part: FinishedPart) -> list[Line]:
        row = part.row
        place = row.get("first_divergence") or row.get("first_difference") or {}
        failed = row.get("state") == "failed"
        return [
            [str(part.n + 1)],  # as the page counts them
            [str(row["stage"] or "–")],
            ["–" if row["step"] is None else str(row["step"])],
            [", ".join(map(str, row["ranks"])) or "–"],
            [Mark(self.say("part_failed"), "bad") if failed else self._verdict(row["verdict"])],
            [Code(place["module"])] if place.get("module") else ["–"],
        ]

    # --- mapping ------------------------------------------------------------------------------------------------------------------------

    def _mapping(self, finished: Finished) -> Iterator[Block]:
        rows = by_layer(used_mapping(finished).pairs)
        if not rows:
            return
        yield Heading(2, self.say("mapping"))
        shown: list[list[Line]] = [[_codes(left), _codes(right), [self.say(pair.relation)]] for left, right, _, pair in rows[:MOST_PAIRS]]
        yield Grid([self.say("left"), self.say("right"), self.say("relation")], shown)
        if len(rows) > MOST_PAIRS:
            yield Paragraph([self.say("more", count=len(rows) - MOST_PAIRS)])


def _unmatched(part: FinishedPart, language: Language) -> Iterator[tuple[str, str, int, list[str]]]:
    """Rows of the tree that only one side has, by side and reason: how many, and the first modules."""
    rows, _ = part.open()
    roles = {name: int(value) for value, name in rows.meta["roles"].items()}
    reason, role, module = rows.array("reason"), rows.array("role"), rows.array("module")
    for side in ("left", "right"):
        mine = (role == roles[f"{side}_only"]) & (reason != 255)
        for code in np.unique(reason[mine]).tolist():
            chosen = np.flatnonzero(mine & (reason == code))
            names = list(dict.fromkeys(rows.strings[index] for index in module[chosen[:200]].tolist() if index >= 0))
            yield side, rows.meta["reasons"][code]["text"][language], len(chosen), names


def _codes(names: Sequence[str], count: int | None = None) -> Line:
    spans: list[Span] = []
    for name in names[:MOST_NAMES]:
        spans += [", ", Code(name)] if spans else [Code(name)]
    return [*spans, " …"] if len(names) > MOST_NAMES or (count or 0) > len(names) > 0 else spans


def _kind(origin: JsonObject) -> str:
    """Inputs that were not compared are not said to agree."""
    inputs = origin.get("inputs")
    return f"kind_{origin['kind']}" + ("" if inputs in (None, "agree") else f"_{inputs}")
