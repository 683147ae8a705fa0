"""JSON out."""

from __future__ import annotations

import json
import math

import orjson
from hypothesis import given
from hypothesis import strategies as st

from compare.api.render import dumps


def test_orjson_alone_would_write_null_for_what_this_product_hunts():
    assert orjson.dumps([math.nan, math.inf]) == b"[null,null]"


def test_nan_and_infinity_travel_as_words_however_deep():
    data = {"a": math.nan, "b": [math.inf, {"c": (-math.inf, 1.5)}], 3: None}
    assert json.loads(dumps(data)) == {"a": "NaN", "b": ["Infinity", {"c": ["-Infinity", 1.5]}], "3": None}


def test_a_number_that_no_reader_can_hold_travels_as_text():
    assert dumps([2**64, -(2**63) - 1, 2**64 - 1, True]) == b'["18446744073709551616","-9223372036854775809",18446744073709551615,true]'


def test_a_document_that_is_json_already_is_passed_on_untouched():
    assert dumps({"verdict": orjson.Fragment(b'{"x": 1.0}')}) == b'{"verdict":{"x": 1.0}}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


def words(data):
    """The naive oracle: what Python's own encoder would call these numbers."""
    if isinstance(data, float) and not math.isfinite(data):
        return json.dumps(data)
    if isinstance(data, dict):
        return {key: words(value) for key, value in data.items()}
    return [words(value) for value in data] if isinstance(data, list) else data


@given(json_values)
def test_what_is_written_is_strict_json_and_reads_back_the_same(data):
    def bare(name):
        raise AssertionError(f"bare {name}")

    assert json.loads(dumps(data), parse_constant=bare) == words(data)
