"""Pickles that describe no tensor, or mean harm: refused by instruction, name and byte, and never executed."""

from __future__ import annotations

import contextlib
import io
import os
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compare.engine.errors import DumpError
from compare.engine.tensors import limits, open_tensor, statistics
from tests.engine.tensors import writer
from tests.engine.tensors.refusals import FLOATS, GOOD, STORAGE, described, refusal
from tests.engine.tensors.writer import name, number, persistent, program, pt, tensor, text


def test_the_writer_itself_writes_what_is_read():
    assert open_tensor(io.BytesIO(described(GOOD)), "a").array().tolist() == [[0, 1, 2], [3, 4, 5]]


class Harm:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_code_is_refused_and_runs_nothing(tmp_path, protocol):
    trap = tmp_path / "ran"
    error = refusal(pt(pickle.dumps(Harm(str(trap)), protocol), {"0": FLOATS}))
    assert error.code in {"tensor_name", "tensor_instruction"}
    assert "nothing was executed" in str(error)
    assert not trap.exists()


def identity(*parts: bytes) -> bytes:
    return b"(" + b"".join(parts) + b"tQ."


def alone(storage: bytes, elements: int) -> bytes:
    return tensor(storage, [elements], [1]) + b"."


def floats(elements: int, key: str = "0") -> bytes:
    return persistent("torch FloatStorage", key, elements)


def shaped(shape: bytes) -> bytes:
    return name(writer.REBUILD) + b"(" + STORAGE + number(0) + shape + b"(" + number(1) + b"tN}tR."


WORD, CLASS, KEY, DEVICE, SIX = text("storage"), name("torch FloatStorage"), text("0"), text("cpu"), number(6)
PROGRAMS = {
    # what it is: program, code, what the sentence must say
    "code by an old instruction": (b"(S'true'\nios\nsystem\n.", "tensor_instruction", "STRING at byte 1"),
    "code by INST": (b"(ios\nsystem\n.", "tensor_instruction", "INST at byte 1"),
    "code by OBJ": (b"(" + name("collections OrderedDict") + b"o.", "tensor_instruction", "OBJ"),
    "code by NEWOBJ": (name("collections OrderedDict") + b")\x81.", "tensor_instruction", "NEWOBJ"),
    "code by an extension": (b"\x82\x01.", "tensor_instruction", "EXT1"),
    "a persistent id in words": (b"Pstorage\n.", "tensor_instruction", "PERSID at byte 0"),
    "an out-of-band buffer": (b"\x97.", "tensor_instruction", "NEXT_BUFFER"),
    "bytes": (b"B\x01\x00\x00\x00x.", "tensor_instruction", "BINBYTES"),
    "a set": (b"\x8f.", "tensor_instruction", "EMPTY_SET"),
    "a second value for one": (GOOD + b"2.", "tensor_instruction", "DUP"),
    "eval": (name("builtins eval") + b"(" + text("1") + b"tR.", "tensor_name", "builtins.eval at byte 0"),
    "a name that looks like another": (name("torch._utils _rebuild_tensor_v9"), "tensor_name", "_rebuild_tensor_v9"),
    "a dotted name by STACK_GLOBAL": (text("torch") + text("_utils.os.system") + b"\x93.", "tensor_name", "torch._utils.os.system"),
    "a name of no text": (number(1) + number(2) + b"\x93.", "tensor_description", "no text"),
    "a name with control characters": (name("torch \x1b[31m"), "tensor_name", "torch.\ufffd[31m"),
    "a name that turns the text around": (text("torch") + text("\u202e") + b"\x93.", "tensor_name", "torch.\ufffd"),
    "a name of 20,000 letters": (name("torch " + "a" * 20_000), "tensor_name", "…"),
    "a call of a storage class": (name("torch FloatStorage") + b")R.", "tensor_description", "no function"),
    "a call of a dtype": (name("torch float32") + b")R.", "tensor_description", "no function"),
    "a call of a number": (number(1) + b")R.", "tensor_description", "no function"),
    "a call with no tuple": (name(writer.REBUILD) + b"]R.", "tensor_description", "no function"),
    "a call through a call": (
        name("torch._tensor _rebuild_from_type_v2") + b"(" + name("torch._utils _rebuild_parameter") + b"N)Nt" + b"R.",
        "tensor_description", "no function that makes a tensor",
    ),
    "a call without arguments": (name(writer.REBUILD) + b")R.", "tensor_description", "no storage"),
    "a parameter of no tensor": (name("torch._utils _rebuild_parameter") + b"(" + number(1) + b"tR.", "tensor_description", "no tensor"),
    "no end": (GOOD, "tensor_description", "cut off, unknown or missing"),
    "nothing at all": (b"", "tensor_description", "byte 0"),
    "more after the end": (GOOD + b".N.", "tensor_description", "follow"),
    "values left over": (b"N" + GOOD + b".", "tensor_description", "left over"),
    "an end without a value": (b".", "tensor_description", "missing"),
    "an end at a mark": (b"(.", "tensor_description", "missing"),
    "a tuple without a mark": (b"t.", "tensor_description", "mark is missing"),
    "a tuple over a mark": (b"N(\x86.", "tensor_description", "missing"),
    "a value never kept": (b"h\x07.", "tensor_description", "never kept"),
    "a text that is cut off": (b"X\xff\xff\xff\x7fabc", "tensor_description", "cut off"),
    "an unknown instruction": (b"\xff.", "tensor_description", "unknown"),
    "a text that is no UTF-8": (b"X\x01\x00\x00\x00\xff.", "tensor_description", "unknown"),
    "items of no dict": (b"N" + text("a") + b"Ns.", "tensor_description", "no dict"),
    "an odd number of items": (b"}(" + text("a") + b"u.", "tensor_description", "no dict"),
    "a key that is a tuple": (b"})Ns.", "tensor_description", "key"),
    "an item of no list": (b"NNa.", "tensor_description", "no list"),
    "attributes of a tensor": (GOOD + b"}b.", "tensor_description", "attributes"),
    "a dict in itself": (b"}q\x00" + text("a") + b"h\x00s.", "tensor_content", "dict"),
    "a list in itself": (b"]q\x00h\x00a.", "tensor_content", "list"),
    "a persistent id of a number": (number(0) + b"Q.", "tensor_description", "no storage"),
    "a persistent id of nothing": (b")Q.", "tensor_description", "no storage"),
    "a persistent id in a persistent id": (identity(WORD, STORAGE, KEY, DEVICE, SIX), "tensor_description", "no storage"),
    "a persistent id of another kind": (identity(text("module"), CLASS, KEY, DEVICE, SIX), "tensor_description", "no storage"),
    "a key that is a number": (identity(WORD, CLASS, number(0), DEVICE, SIX), "tensor_description", "no storage"),
    "a negative storage": (persistent("torch FloatStorage", "0", -6) + b".", "tensor_description", "no storage"),
    "a storage that is no storage class": (persistent("torch float32", "0", 6) + b".", "tensor_description", "no storage"),
    "a storage alone": (STORAGE + b".", "tensor_content", "Storage"),
    "a storage on the meta device": (persistent("torch FloatStorage", "0", 6, "meta") + b".", "tensor_no_data", "without numbers"),
    "a key that climbs": (alone(floats(6, "../../etc/passwd"), 6), "tensor_record_missing", "data/../../etc/passwd"),
    "a key of another record": (alone(floats(6, "7"), 6), "tensor_record_missing", "data/7"),
    "an untyped tensor": (alone(persistent("torch.storage UntypedStorage", "0", 24), 6), "tensor_description", "type"),
    "a smaller storage than is said": (alone(floats(5), 5), "tensor_storage", "20 bytes and holds 24"),
    "a larger storage than is said": (alone(floats(7), 7), "tensor_storage", "28 bytes and holds 24"),
    "a storage of 2^70 elements": (alone(floats(2**70), 6), "tensor_description", "no storage"),
    "one row too many": (tensor(STORAGE, [3, 3], [3, 1]) + b".", "tensor_bounds", "reach element 9 of a storage of 6"),
    "a stride too long": (tensor(STORAGE, [2, 3], [4, 1]) + b".", "tensor_bounds", "reach element 7"),
    "an offset too far": (tensor(STORAGE, [6], [1], 1) + b".", "tensor_bounds", "reach element 7"),
    "an offset of one element too far": (tensor(STORAGE, [], [], 6) + b".", "tensor_bounds", "reach element 7"),
    "a reach that overflows 64 bits": (tensor(STORAGE, [2**32, 2**32], [2**32, 1]) + b".", "tensor_shape", "4294967296"),
    "strides that overflow 64 bits": (tensor(STORAGE, [3, 3], [2**62, 2**62]) + b".", "tensor_bounds", "reach"),
    "strides beyond 64 bits": (tensor(STORAGE, [2], [2**64]) + b".", "tensor_shape", "…"),
    "an offset that overflows 64 bits": (tensor(STORAGE, [1], [1], 2**63) + b".", "tensor_shape", "…"),
    "a negative length": (tensor(STORAGE, [-1], [1]) + b".", "tensor_shape", "[-1]"),
    "two negative lengths": (tensor(STORAGE, [-2, -3], [3, 1]) + b".", "tensor_shape", "[-2, -3]"),
    "a negative stride": (tensor(STORAGE, [6], [-1], 5) + b".", "tensor_shape", "[-1]"),
    "a negative offset": (tensor(STORAGE, [6], [1], -1) + b".", "tensor_shape", "offset -1"),
    "more lengths than strides": (tensor(STORAGE, [2, 3], [1]) + b".", "tensor_shape", "[2, 3]"),
    "65 dimensions": (tensor(STORAGE, [1] * 65, [1] * 65) + b".", "tensor_shape", "…"),
    "an absurd shape": (tensor(STORAGE, [10**9, 10**6], [0, 0]) + b".", "tensor_repeats", "repeats 6 stored elements"),
    "an absurd shape of nothing": (tensor(STORAGE, [0, 2**40, 2**40], [0, 0, 0]) + b".", "tensor_shape", "[0, 1099511627776"),
    "a length that is a text": (shaped(b"(" + text("6") + b"t"), "tensor_description", "whole"),
    "a length that is a bool": (shaped(b"(\x88t"), "tensor_description", "whole"),
    "a shape that is a number": (shaped(number(6)), "tensor_description", "whole"),
}  # fmt: skip


@pytest.mark.parametrize(("bytecode", "code", "said"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_description_of_no_tensor_is_refused_with_its_place(bytecode, code, said):
    error = refusal(pt(bytecode, {"0": FLOATS}))
    assert error.code == code
    assert said in str(error)


def test_deep_nesting_and_long_programs_end_quickly():
    for bomb in (
        b")" + b"\x85" * 60_000,
        b"(" * 60_000,
        b"]" + b"q\x00h\x00h\x00e" * 10,
        b"N" * 60_000 + b".",
        b"}q\x00" + b"h\x00" * 60_000,
    ):
        refusal(pt(bomb, {"0": FLOATS}))
    deep = tensor(STORAGE, [6], [1], more=b"\x89)" + b"\x85" * 60_000)
    assert open_tensor(io.BytesIO(described(deep)), "a").array().size == 6


def test_a_program_that_is_too_long_is_not_interpreted():
    assert "more than 65536" in str(refusal(pt(b"N" * (limits.LARGEST_PROGRAM + 1), {"0": FLOATS})))


@settings(max_examples=600, deadline=None)
@given(st.data())
def test_any_wrong_bytes_in_a_description_are_refused_or_stay_within_the_storage(data):
    bytecode = bytearray(program(GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(bytecode) - 1))
        action = data.draw(st.sampled_from(["set", "insert", "delete"]))
        byte = data.draw(st.integers(0, 255) | st.sampled_from(b"(ct.QRXKJM)}]\x85\x86\x87\x88N"))
        if action == "set":
            bytecode[position] = byte
        elif action == "insert":
            bytecode.insert(position, byte)
        else:
            del bytecode[position]
    with contextlib.suppress(DumpError):
        tensor = open_tensor(io.BytesIO(pt(bytes(bytecode), {"0": FLOATS})), "a")
        tensor.array().sum()
        statistics(tensor)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([
    b"(", b")", b"}", b"]", b"N", b"\x88", b"t", b"\x85", b"\x86", b"\x87", b"R", b"Q", b"s", b"u", b"a", b"e", b"b",
    b"q\x00", b"h\x00", b"\x94",
    STORAGE, GOOD, name(writer.REBUILD), name("torch._utils _rebuild_parameter"), name("torch._tensor _rebuild_from_type_v2"),
    name("collections OrderedDict"), name("torch FloatStorage"), number(1), number(-1), number(2**62), text("storage"), text("0"),
]), max_size=40))  # fmt: skip
@example([b"]", b"q\x00", b"(", b"h\x00", b"t", b"R"])
def test_any_order_of_known_instructions_ends_in_a_tensor_or_a_refusal(instructions):
    with contextlib.suppress(DumpError):
        open_tensor(io.BytesIO(pt(b"".join(instructions) + b".", {"0": FLOATS})), "a").array()
