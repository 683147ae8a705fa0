"""Numbers by name, wherever a trainer keeps them, and equations with them put in: ``train_batch_size 256 / ppo_mini_batch_size 64 = 4``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from compare.engine.keydata.configuration import Value
from compare.engine.keydata.formula import SHOWN, Equation, Operation, Term, names, number, term, value, written
from compare.engine.keydata.settings import Settings, meant, normal_path, same
from compare.engine.model import JsonObject

ROLES = ("train", "infer")
LANGUAGES = ("en", "zh")
SHORTEST_NAME = 3  # a shorter one says nothing without the section it stands in: rollout/n
LONGEST_VALUE = 80
WORDS = {
    "wanted": {"en": "wanted", "zh": "应为"},
    "not_set": {"en": " (not set)", "zh": "（未设置）"},
    "missing": {"en": "{names} not set", "zh": "未设置 {names}"},
    "no_number": {"en": "{name} is no number: {value}", "zh": "{name} 不是数字：{value}"},
    "conflict": {"en": "{name} is set twice: {value} and {other}", "zh": "{name} 有两个不同的值：{value} 与 {other}"},
    "zero": {"en": "{written}: division by 0", "zh": "{written}：除数为 0"},
    "and": {"en": ", ", "zh": "、"},
    "comma": {"en": ", ", "zh": "，"},
    "semicolon": {"en": "; ", "zh": "；"},
}
Text = dict[str, str]


@dataclass(frozen=True, slots=True)
class Number:
    """A number that equations speak of. Either it stands in a configuration (``paths``) or it is computed of others (``formulas``)."""

    paths: tuple[str, ...]
    default: Fraction | None
    of: str | None
    formulas: tuple[Term, ...]
    label: Text


def setting_name(path: str) -> str:
    """How a setting is called: the last name of its path, with the section it stands in where that alone says too little."""
    *above, last = path.strip("/").split("/")
    return f"{above[-1]}/{last}" if len(last) < SHORTEST_NAME and above else last


def found_row(path: str | None = None, value: object = None, state: str = "unknown", text: Text | None = None) -> JsonObject:
    row = {"state": state, "path": path, "value": value}
    return row if text is None else {**row, "text": text}


def number_of(row: Mapping[str, Any]) -> Number:
    if row.get("of") not in (None, *ROLES):
        raise ValueError(f"whose setting is that: {row['of']}")
    paths = tuple(normal_path(path) for path in row.get("paths", ()))
    default = None if "default" not in row else Fraction(row["default"])
    label = dict(row["as"]) if "as" in row else dict.fromkeys(LANGUAGES, setting_name(paths[0]))
    return Number(paths, default, row.get("of"), tuple(term(text) for text in row.get("is", ())), label)


def check_names(asked: Sequence[str], numbers: Mapping[str, Number], above: tuple[str, ...] = ()) -> None:
    for name in asked:
        if name in above:
            raise ValueError(f"{name} is computed of itself")
        for formula in numbers[name].formulas:
            check_names(list(names(formula)), numbers, (*above, name))


@dataclass(frozen=True, slots=True)
class _Held:
    """What is known of a number: its value, or a ``fault`` that says why there is none (None: it is not set)."""

    value: Fraction | None = None
    path: str | None = None
    name: str = ""
    fault: Text | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    row: JsonObject
    known: int  # how many of the numbers that it names itself stand in a configuration


class Places:
    """Where one side's numbers are found: in its own configuration, or each in that of the side whose it is."""

    def __init__(self, numbers: Mapping[str, Number], sides: Sequence[Settings], own: int, roles: Sequence[str | None]) -> None:
        self.numbers = numbers
        self.sides = sides
        self.own = own
        self.roles = roles

    def solve(self, asked: Equation) -> Answer:
        """An equation with the numbers put in."""
        leaves, computed = self._leaves(asked.names)
        held = {name: self._held(name) for name in leaves}
        known = sum(held[name].path is not None for name in (_called(name, computed) for name in asked.names) if name in held)
        path = next((one.path for one in held.values() if one.path is not None), None)
        if path is None:  # every number is the one that is taken where nothing is set: the configuration says nothing
            return Answer(found_row(), 0)
        faults = [one.fault for one in held.values() if one.fault is not None]
        missing = [name for name, one in held.items() if one.value is None and one.fault is None]
        if faults:
            return Answer(found_row(path, text=faults[0]), known)
        if missing:
            labels = _each(lambda language: WORDS["and"][language].join(self.numbers[name].label[language] for name in missing))
            return Answer(found_row(path, text=_said("missing", names=labels)), known)
        shown, values = self._shown(held), {name: one.value for name, one in held.items() if one.value is not None}
        try:
            for name in reversed(list(computed)):
                values[name] = value(computed[name], values)
            left, holds = value(asked.left, values), asked.holds(values)
        except ZeroDivisionError:
            zero = _each(lambda language: self._written(asked.left, language, shown, values))
            return Answer(found_row(path, text=_said("zero", written=zero)), known)
        text = _each(lambda language: self._sentence(asked, left, language, shown, computed, values))
        return Answer(found_row(path, _plain(left), "ok" if holds else "failed", text), known)

    def _leaves(self, asked: Sequence[str]) -> tuple[list[str], dict[str, Term]]:
        """The names that stand in configurations, and how the others are computed of them, the outermost first."""
        numbers = self.numbers
        leaves: list[str] = []
        computed: dict[str, Term] = {}
        waiting = list(asked)
        while waiting:
            name = waiting.pop(0)
            formulas = numbers[name].formulas
            if not formulas:
                leaves.append(name)
                continue
            formula = next((one for one in formulas if self._is_known(one)), max(formulas, key=self._known))
            computed.pop(name, None)  # what two ask for is computed before both
            computed[name] = formula
            waiting += names(formula)
        return list(dict.fromkeys(leaves)), computed

    def _is_known(self, formula: Term) -> bool:
        leaves, _ = self._leaves(list(names(formula)))
        return all(self._held(name).value is not None for name in leaves)

    def _known(self, formula: Term) -> int:
        leaves, _ = self._leaves(list(names(formula)))
        return sum(self._held(name).path is not None for name in leaves)

    def _held(self, name: str) -> _Held:
        one = self.numbers[name]
        own = self.own if one.of is None or one.of not in self.roles else list(self.roles).index(one.of)
        # What belongs to one side may stand in the other's configuration alone; what belongs to neither is this side's.
        for at in (own, 1 - own) if one.of in self.roles and one.of is not None else (own,):
            for end in one.paths:
                found = [(path, given) for path, given in self.sides[at].at(end) if meant(given) is not None]
                if found:
                    return _read(found)
        return _Held(one.default, None, one.label["en"])

    def _shown(self, held: Mapping[str, _Held]) -> Mapping[str, Text]:
        """What stands for each number: its name and value. Two of one name are told apart by their sections."""
        labels = [one.name for one in held.values()]
        shown: dict[str, Text] = {}
        for name, one in held.items():
            if one.value is None:
                continue
            label = "/".join((one.path or one.name).split("/")[-2:]) if labels.count(one.name) > 1 else one.name
            put = f"{label} {number(one.value)}"
            shown[name] = dict.fromkeys(LANGUAGES, put) if one.path else {key: f"{put}{text}" for key, text in WORDS["not_set"].items()}
        return shown

    def _written(self, of: Term, language: str, shown: Mapping[str, Text], values: Mapping[str, Fraction]) -> str:
        def put(name: str) -> str:
            if name in shown:
                return shown[name][language]
            label = self.numbers[name].label[language]
            return f"{label} {number(values[name])}" if name in values else label

        return written(of, put)

    def _sentence(
        self,
        asked: Equation,
        left: Fraction,
        language: str,
        shown: Mapping[str, Text],
        computed: Mapping[str, Term],
        values: Mapping[str, Fraction],
    ) -> str:
        """``train_batch_size 256 / ppo_mini_batch_size 64 = 4, wanted 1``; then how what is computed in it comes about."""
        # What is another number under its own name is called by that name.
        shown = {**shown, **{name: shown[_called(name, computed)] for name in computed if _called(name, computed) in shown}}
        sides = [self._written(side, language, shown, values) for side in (asked.left, asked.right)]
        if isinstance(asked.left, Operation):
            sides[0] += f" = {number(left)}"
        sign = "" if asked.sign == "=" else f"{SHOWN.get(asked.sign, asked.sign)} "
        sentences = [f"{sides[0]}{WORDS['comma'][language]}{WORDS['wanted'][language]} {sign}{sides[1]}"]
        for name, formula in computed.items():
            if name not in shown:
                label = self.numbers[name].label[language]
                sentences.append(f"{label} = {self._written(formula, language, shown, values)} = {number(values[name])}")
        return WORDS["semicolon"][language].join(sentences)


def _read(found: Sequence[tuple[str, Value]]) -> _Held:
    path, given = found[0]
    name = setting_name(path)
    for _, other in found[1:]:
        if not same(given, other):
            return _Held(None, path, name, _said("conflict", name=name, value=_short(given), other=_short(other)))
    as_number = _fraction(given)
    if as_number is None:
        return _Held(None, path, name, _said("no_number", name=name, value=_short(given)))
    return _Held(as_number, path, name)


def _fraction(given: object) -> Fraction | None:
    """The number that a value or a text is, exactly as it is written; None for anything else, NaN and infinities too."""
    found = meant(given)
    if isinstance(found, bool) or not isinstance(found, int | float) or found != found or found in (float("inf"), float("-inf")):
        return None
    return Fraction(found) if isinstance(found, int) or found.is_integer() else Fraction(repr(found))


def _called(name: str, computed: Mapping[str, Term]) -> str:
    """The setting that a number is, where it is one under another name."""
    formula = computed.get(name)
    return _called(formula, computed) if isinstance(formula, str) else name


def _short(given: object) -> str:
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _plain(of: Fraction) -> int | float:
    return of.numerator if of.denominator == 1 else float(of)


def _each(said: Callable[[str], str]) -> Text:
    return {language: said(language) for language in LANGUAGES}


def _said(word: str, **params: object) -> Text:
    """A sentence of WORDS; a param that is a Text is put in in its language."""
    return _each(
        lambda language: WORDS[word][language].format(
            **{name: given[language] if isinstance(given, dict) and language in given else given for name, given in params.items()}
        )
    )
