"""Whatever two runs hold, comparing them the other way round says the same with the sides exchanged."""

from __future__ import annotations

import io

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from compare.engine.diagnose.run_loop import loop_document
from compare.engine.keydata.comparison import compare_key_data
from compare.engine.keydata.places import TablePlace
from compare.engine.keydata.tables import TableReader
from compare.engine.model import KeyData

KEYS = ("prompts", "responses", "ref_log_prob", "old_log_prob", "log_prob", "loss", "mine")
OTHER_SIDE = {"left_only": "right_only", "right_only": "left_only"}
tables = hnp.arrays(
    st.sampled_from([np.float32, np.int64]),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2),
    elements=st.integers(0, 1),
) | hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=2), elements=st.sampled_from([0.0, np.nan, np.inf, -1.0]))
places = st.tuples(st.sampled_from(KEYS), st.integers(0, 2), st.integers(0, 1), st.integers(-1, 1), st.sampled_from(["0", "1", "a"]))
runs = st.dictionaries(places, tables, min_size=1, max_size=12)


def key_data(run: dict[tuple[str, int, int, int, str], np.ndarray]) -> KeyData:
    reader = TableReader()
    for (key, step, rank, micro_step, entry), array in run.items():
        stream = io.BytesIO()
        np.save(stream, array)
        stream.seek(0)
        reader.add(TablePlace("", key, step, rank, micro_step, entry), "x", stream)
    found = reader.finish()
    assert found is not None
    return found


@given(runs, runs)
@settings(deadline=None)
def test_exchanging_the_sides_exchanges_the_sides(left: dict, right: dict) -> None:
    sides = key_data(left), key_data(right)
    there, back = compare_key_data(*sides), compare_key_data(*sides[::-1])
    assert [(key.name, OTHER_SIDE.get(key.state, key.state), key.caused_by) for key in there.keys] == [
        (key.name, key.state, key.caused_by) for key in back.keys
    ]
    for a, b in zip(there.keys, back.keys, strict=True):
        assert {OTHER_SIDE.get(state, state): count for state, count in a.counts.items()} == b.counts
    assert sum(len(key.pairs) for key in there.keys) <= len(left) + len(right)


@given(runs)
@settings(deadline=None)
def test_a_run_equals_itself_whatever_it_holds(run: dict) -> None:
    document = loop_document(compare_key_data(key_data(run), key_data(run)), (None, None), [])
    assert document["verdict"] == "identical"
    assert document["first"] is None
    assert sum(row["tables"] for row in document["key_data"]) == len(run)
