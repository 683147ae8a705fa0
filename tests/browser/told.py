"""The truth that the page is held against: what the command line tells about the same files, and how a number is written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

from tests.live import ROOT

CORPUS = ROOT / "tests" / "data" / "corpus"
TRAIN = CORPUS / "q2_train_stat.zip"


def inference(case: str) -> Path:
    """The inference side of a case of the corpus; "clean" is the one without a fault."""
    return CORPUS / ("q2_infer_stat.zip" if case == "clean" else f"q2_infer_{case}_stat.zip")


@cache
def told(left: Path, right: Path) -> dict[str, Any]:
    """The verdict document of `manage.py compare --json -`."""
    command = [sys.executable, "manage.py", "compare", str(left), str(right), "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1, 3}, done.stderr
    return json.loads(done.stdout)


def first_sentence(headline: str) -> str:
    """What stands before the first full stop that ends a sentence: the page sets the rest a line lower."""
    return re.split(r"\. (?=[A-Z])|。", headline)[0].rstrip(".")


def as_number(text: str) -> float:
    """A number as the page writes it, with a true minus and perhaps a percent sign, which counts."""
    plain = text.replace("\u2212", "-").replace("\u00a0", "").replace("+", "").strip()
    return float(plain.removesuffix("%")) / 100 if plain.endswith("%") else float(plain)


def four_digits(value: float) -> str:
    """A statistic as a person reads it: four significant digits, all digits before the point, halves away from zero, a true minus."""
    exact = abs(Decimal(value))
    if exact == 0:
        return "0"
    if exact < Decimal("1e-4") or exact >= Decimal("999999.5"):
        exponent = exact.adjusted()
        text = f"{rounded(exact.scaleb(-exponent), 3)}e{exponent}"
    else:
        text = str(rounded(exact, max(0, 3 - exact.adjusted())))
    return f"{'-' if value < 0 else ''}{text}".replace("-", "\u2212")


def rounded(number: Decimal, places: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)


def two_places(share: float) -> str:
    """A share as percent, as the layer table writes it."""
    return f"{share * 100:.2f}\u00a0%"
