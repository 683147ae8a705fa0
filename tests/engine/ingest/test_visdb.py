"""A graph_visualize database gives back the dumps that it was made of, and a hostile one does nothing."""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from compare.engine.errors import Cancelled, DumpError
from compare.engine.ingest import Source, limits, paths_to_sources, read_side
from compare.engine.model import Direction, Dump
from tests.engine.ingest import naive
from tests.engine.ingest.dumps import CORPUS, dump_json, outcome, read, zip_bytes
from tests.engine.ingest.test_archives import PACKERS

DATABASES = CORPUS.parent / "databases"


def database(name: str) -> bytes:
    return gzip.decompress((DATABASES / f"{name}.vis.db.gz").read_bytes())


def changed(tmp_path: Path, *statements: str, name: str = "clean_stat.build") -> bytes:
    path = tmp_path / "changed.db"
    path.write_bytes(database(name))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path.read_bytes()


def refusal(tmp_path: Path, content: bytes) -> DumpError:
    refused = outcome(lambda: read(tmp_path, {"a.vis.db": content}))
    assert isinstance(refused, DumpError), refused
    assert refused.where.startswith("a.vis.db")
    assert "\n" not in str(refused)
    return refused


def corpus(name: str) -> Dump:
    return read_side(paths_to_sources([CORPUS / f"{name}.zip"]), name).dumps[0]


@pytest.mark.parametrize(
    ("name", "stages", "dumps"),
    [
        ("clean_stat.build", [None], ["q2_train_stat"]),
        ("pert1_stat.compare", ["NPU", "Bench"], ["q2_shim_pert1_stat", "q2_shim_stat"]),
    ],
)
def test_every_slot_and_parent_is_that_of_the_dump_it_was_made_of(
    tmp_path: Path, name: str, stages: list[str | None], dumps: list[str]
) -> None:
    side = read(tmp_path, {"out/a.vis.db": database(name)})
    assert [(dump.stage, dump.step, dump.rank) for dump in side.dumps] == [(stage, 0, 0) for stage in stages]
    for found, expected in zip(side.dumps, map(corpus, dumps), strict=True):
        assert naive.slots_of_columns(found) == naive.slots_of_columns(expected)
        assert (found.task, found.level, found.framework, found.has_construct) == ("statistics", "L0", "pytorch", True)
        assert forward_tree(found) == forward_tree(expected)


def forward_tree(dump: Dump) -> list[tuple[str, str | None, str | None]]:
    """Names, parents and stacks in the order of the calls; of backward calls the database knows better (and lends them a stack)."""
    records = dump.records
    return [
        (
            name,
            None if records.parent[row] < 0 else records.name[records.parent[row]],
            None if records.stack[row] < 0 else dump.stacks[records.stack[row]],
        )
        for row, name in enumerate(records.name)
        if records.direction[row] == Direction.FORWARD and records.recorded[row]
    ]


@pytest.mark.parametrize("kind", PACKERS)
def test_a_database_in_an_archive_is_read_like_a_loose_one(tmp_path: Path, kind: str) -> None:
    loose = read(tmp_path, {"a.vis.db": database("clean_stat.build")})
    packed = read(tmp_path, {f"x.{kind}": PACKERS[kind]({"out/a.vis.db": database("clean_stat.build")})})
    assert naive.slots_of_columns(packed.dumps[0]) == naive.slots_of_columns(loose.dumps[0])
    assert packed.digest == loose.digest


def test_beside_dumps_a_database_is_left_aside_and_two_are_refused(tmp_path: Path) -> None:
    side = read(tmp_path, {"step0/rank0/dump.json": dump_json(), "a.vis.db": b"not even read"})
    assert [(left.path, left.reason) for left in side.left_aside] == [("a.vis.db", "database_beside_dumps")]
    held = database("clean_stat.build")
    refused = outcome(lambda: read(tmp_path, {"a.vis.db": held, "b.vis.db": held}))
    assert isinstance(refused, DumpError)
    assert refused.code == "two_roots"
    refused = outcome(lambda: read(tmp_path, {"a.vis.db": held, "a.vis.db-wal": b"x"}))
    assert isinstance(refused, DumpError)
    assert refused.code == "database_unfinished"
    assert read(tmp_path, {"a.vis.db": held, "a.vis.db-wal": b""}).dumps


SWAP = "ALTER TABLE tb_nodes RENAME TO kept"
ENDLESS = "CREATE VIEW tb_stack AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, x AS stack_info FROM n"
HOSTILE: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "no database": (lambda _: b"hello", "database_foreign"),
    "nothing": (lambda _: b"", "file_empty"),
    "a header alone": (lambda _: b"SQLite format 3\0" + bytes(84), "database_damaged"),
    "a database cut in half": (lambda _: database("clean_stat.build")[:200_000], "database_damaged"),
    "a database of something else": (lambda p: changed(p, "DROP TABLE tb_nodes"), "database_foreign"),
    "a column missing": (lambda p: changed(p, "ALTER TABLE tb_nodes RENAME COLUMN input_data TO other"), "database_foreign"),
    "a view for a table": (lambda p: changed(p, SWAP, "CREATE VIEW tb_nodes AS SELECT * FROM kept"), "database_foreign"),
    "an endless view": (
        lambda p: changed(p, "DROP TABLE tb_stack", ENDLESS),
        "database_foreign",
    ),
    "a computed column": (
        lambda p: changed(
            p,
            "DROP TABLE tb_stack",
            "CREATE TABLE tb_stack (id TEXT, stack_info TEXT GENERATED ALWAYS AS (hex(zeroblob(90))) VIRTUAL)",
            "INSERT INTO tb_stack (id) VALUES ('x')",
        ),
        "database_foreign",
    ),
    "no nodes": (lambda p: changed(p, "DELETE FROM tb_nodes"), "empty_side"),
    "a step that is no number": (lambda p: changed(p, "UPDATE tb_nodes SET step = 'x'"), "database_foreign"),
    "a rank below zero": (lambda p: changed(p, "UPDATE tb_nodes SET rank = -1"), "database_foreign"),
    "a side that is none": (lambda p: changed(p, "UPDATE tb_nodes SET data_source = '../x'"), "database_foreign"),
    "names that are one": (lambda p: changed(p, "UPDATE tb_nodes SET node_name = 'a'"), "database_foreign"),
    "values that are no JSON": (lambda p: changed(p, "UPDATE tb_nodes SET input_data = '{'"), "bad_record"),
    "values that are a list": (lambda p: changed(p, "UPDATE tb_nodes SET input_data = '[]'"), "bad_record"),
    "values that are bytes": (lambda p: changed(p, "UPDATE tb_nodes SET input_data = x'ff00'"), "bad_record"),
    "values nested too deep": (
        lambda p: changed(p, "UPDATE tb_nodes SET input_data = replace(hex(zeroblob(50000)), '0', '[')"),
        "bad_record",
    ),
    "a statistic that is a word": (
        lambda p: changed(p, 'UPDATE tb_nodes SET input_data = replace(input_data, \'"Max": "\', \'"Max": "big\')'),
        "bad_record",
    ),
    "a stack that is an object": (lambda p: changed(p, "UPDATE tb_stack SET stack_info = '{}'"), "bad_record"),
}


@pytest.mark.parametrize(("make", "code"), HOSTILE.values(), ids=HOSTILE)
@pytest.mark.timeout(60)
def test_a_hostile_database_is_refused(tmp_path: Path, make: Callable[[Path], bytes], code: str) -> None:
    assert refusal(tmp_path, make(tmp_path)).code == code


@pytest.mark.timeout(60)
def test_parents_in_a_circle_and_unknown_stacks_do_no_harm(tmp_path: Path) -> None:
    dump = read(
        tmp_path, {"a.vis.db": changed(tmp_path, "UPDATE tb_nodes SET up_node = node_name, stack_id = 'x', node_type = '0'")}
    ).dumps[0]
    assert not dump.stacks
    gathered = changed(
        tmp_path,
        "UPDATE tb_nodes SET up_node = 'DefaultModel'",
        "UPDATE tb_nodes SET up_node = 'DefaultModel' WHERE node_name = 'DefaultModel'",
    )
    assert (read(tmp_path, {"a.vis.db": gathered}).dumps[0].records.parent < 0).any()


def test_a_database_that_is_too_large_is_refused_while_it_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_DATABASE", 100_000)
    assert refusal(tmp_path, database("clean_stat.build")).code == "database_too_large"


def test_a_database_that_asks_for_too_much_work_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compare.engine.ingest.visdb.LEAST_LOOKS", 0)
    monkeypatch.setattr("compare.engine.ingest.visdb.STEPS_BETWEEN_LOOKS", 100)
    refused = refusal(tmp_path, database("clean_stat.build"))
    assert refused.code == "database_damaged"
    assert "more work" in str(refused)


def test_reading_a_database_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compare.engine.ingest.source.Meter.INTERVAL", 0.0)

    def stop(_stage: str, fraction: float, _numbers: dict[str, int]) -> None:
        if fraction > 0.5:
            raise Cancelled

    path = tmp_path / "a.vis.db"
    path.write_bytes(database("clean_stat.build"))
    with pytest.raises(Cancelled):
        read_side([Source(path, "a.vis.db")], "x", stop)


def test_a_zip_of_a_database_beside_a_dump_is_one_run(tmp_path: Path) -> None:
    side = read(tmp_path, {"x.zip": zip_bytes({"rank0/dump.json": dump_json(), "out/a.vis.db": b"x"})})
    assert len(side.dumps) == 1
