"""Grows the columns of a dump while its records stream by."""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from compare.engine.ingest.leaves import (
    MARKED_NUMBERS,
    NUMBER_TYPES,
    TENSOR_TYPES,
    LeafValue,
    as_float,
    as_text,
    is_possible,
    written_number,
)  # fmt: skip
from compare.engine.model import NO_FILE, Group, Int32, Int64, Leaf, SlotTable, UInt8

Item = TypeVar("Item", bound=Hashable)

TENSOR = int(Leaf.TENSOR)  # a plain int: it is hashed for every slot
PRINTED_TRACE = "9.18273645546372e"  # as Python prints the marks
NO_NUMBERS = (None, None, None, None)


class Interned(dict[Item, int]):
    """Every distinct item once; ``table[item]`` is its index, given on first sight."""

    def __missing__(self, item: Item) -> int:
        index = self[item] = len(self)
        return index


class SlotNames(dict[int | str, int]):
    """Indices of the slot names of one group by their last part, so that ``input.0`` is put together once a dump."""

    def __init__(self, names: Interned[str], prefix: str) -> None:
        super().__init__()
        self.names = names
        self.prefix = prefix

    def __missing__(self, key: int | str) -> int:
        index = self[key] = self.names[f"{self.prefix}.{key}"]
        return index


class Odd(Exception):
    """A record holds what the typed decoder does not keep; it must be read member by member."""


class SlotColumns:
    """The slots of one dump: appended as plain Python values, packed into arrays after every block so that memory stays near the result."""

    def __init__(self) -> None:
        self.names: Interned[str] = Interned()
        self.types: Interned[str] = Interned()
        self.dtypes: Interned[str] = Interned()
        self.shapes: Interned[tuple[int, ...]] = Interned()
        self.texts: Interned[str] = Interned()
        # What many slots share (leaf, type, dtype, shape) is looked up once a slot instead of four times.
        self.forms: Interned[tuple[int, str | None, str | None, tuple[int, ...] | None]] = Interned()
        self.name_list: list[int] = []
        self.form_list: list[int] = []
        self.numbers: list[float | None] = []
        self.nan_held = False  # ``numbers`` may hold NaN besides None, which become the same in an array
        self.marked = False  # ``numbers`` may hold leaves.MARKS for NaN and infinities
        self.owner = ""  # the name of the record whose slots are added
        self.text_at: list[tuple[int, int]] = []
        self.checksum_at: list[tuple[int, int]] = []
        self.data_name_at: list[tuple[int, int]] = []
        self.packed = 0
        self.packed_names = array("i")
        self.packed_forms = array("i")
        self.packed_numbers = array("d")
        self.packed_present = array("B")

    def __len__(self) -> int:
        return self.packed + len(self.name_list)

    def forget(self, length: int) -> None:
        """Take back the slots from ``length`` on; they must not have been packed."""
        kept = length - self.packed
        del self.name_list[kept:], self.form_list[kept:], self.numbers[4 * kept :]
        for sparse in (self.text_at, self.checksum_at, self.data_name_at):
            while sparse and sparse[-1][0] >= length:
                sparse.pop()

    def add(self, name: int, leaf: LeafValue[Any] | None) -> None:
        """Append one slot. Raises leaves.Unreadable."""
        self.name_list.append(name)
        if leaf is None:
            self._add_form(Leaf.NULL)
        elif leaf.dtype is not None or leaf.shape is not None or leaf.type in TENSOR_TYPES:
            self._add_tensor(leaf)
        else:
            self._add_plain(leaf)

    def add_typed(self, names: SlotNames, arguments: Iterable[tuple[int | str, LeafValue[Any] | list[Any] | None]]) -> None:
        """Append the slots of one group of arguments. Raises leaves.Unreadable, and Odd when an object turns out to be no leaf.

        The same as ``add`` for each, but without a call for a plain tensor, which nearly all are.
        """
        add_name, add_form, add_numbers, forms = self.name_list.append, self.form_list.append, self.numbers.extend, self.forms
        for key, leaf in arguments:
            if isinstance(leaf, LeafValue):
                if leaf.type is None:
                    raise Odd
                if (
                    leaf.dtype is None
                    or leaf.md5 is not None
                    or leaf.tensor_stat_index is not None
                    or leaf.md5_index is not None
                    or leaf.placements is not None
                    or leaf.data_name is not None
                ):
                    self.add(names[key], leaf)
                    continue
                add_name(names[key])
                add_form(forms[TENSOR, leaf.type, leaf.dtype, leaf.shape])
                add_numbers((leaf.maximum, leaf.minimum, leaf.mean, leaf.norm))
            elif leaf is None:
                self.add(names[key], None)
            else:
                self.add_typed(names, ((f"{key}.{index}", inner) for index, inner in enumerate(leaf)))

    def _add_form(self, kind: Leaf, type_name: str | None = None) -> None:
        self.form_list.append(self.forms[int(kind), type_name, None, None])
        self.numbers.extend(NO_NUMBERS)

    def _add_tensor(self, leaf: LeafValue[Any]) -> None:
        kind = TENSOR
        numbers = (leaf.maximum, leaf.minimum, leaf.mean, leaf.norm)
        if leaf.tensor_stat_index is not None or (leaf.md5_index is not None and numbers == NO_NUMBERS):
            kind = int(Leaf.PLACEHOLDER)
        self.form_list.append(self.forms[kind, leaf.type, leaf.dtype, leaf.shape])
        self.numbers.extend(numbers)
        if leaf.md5 is not None:
            self.checksum_at.append((len(self) - 1, self.texts[leaf.md5]))
        if leaf.placements is not None:
            self._add_text(leaf.placements)
        if leaf.data_name is not None:
            # Nearly all begin with their record's name: what remains is the same for many.
            name = leaf.data_name
            short = name[len(self.owner) :] if name.startswith(self.owner + ".") else name
            self.data_name_at.append((len(self) - 1, self.texts[short]))

    def _add_text(self, value: Any) -> None:
        text = as_text(value)
        if self.marked and PRINTED_TRACE in text:
            raise Odd  # a NaN that was marked as if it were a statistic
        self.text_at.append((len(self) - 1, self.texts[text]))

    def _add_plain(self, leaf: LeafValue[Any]) -> None:
        value = leaf.value if leaf.value is not None else leaf.format if leaf.format is not None else leaf.group_ranks
        if isinstance(value, str) and leaf.type in NUMBER_TYPES:
            value = written if (written := written_number(value)) is not None else value
        if isinstance(value, int | float):
            number = as_float(value)
            self.nan_held |= number != number
            self.form_list.append(self.forms[int(Leaf.NUMBER), leaf.type, None, None])
            self.numbers.extend((number,) * 4)
        elif value is not None:
            self._add_form(Leaf.TEXT, leaf.type)
            self._add_text(value)
        elif leaf.tensor_stat_index is not None or leaf.md5_index is not None:
            self._add_form(Leaf.PLACEHOLDER, leaf.type)
        else:
            self._add_form(Leaf.NULL)

    def pack(self) -> None:
        """Move what was appended into the arrays."""
        self.packed += len(self.name_list)
        self.packed_names.extend(array("i", self.name_list))
        self.packed_forms.extend(array("i", self.form_list))
        values = np.array(self.numbers, dtype=np.float64)  # None becomes NaN
        present = np.array([number is not None for number in self.numbers], dtype=np.bool_) if self.nan_held else ~np.isnan(values)
        if self.marked:
            for mark, number in MARKED_NUMBERS:
                values[values == mark] = number
        self.packed_numbers.frombytes(values.tobytes())
        self.packed_present.frombytes(np.packbits(present.reshape(-1, 4), axis=1, bitorder="little").tobytes())
        self.name_list.clear()
        self.form_list.clear()
        self.numbers.clear()
        self.nan_held = self.marked = False

    def table(self, slot_start: Int64) -> SlotTable:
        """The finished table; the arrays are handed over without a copy."""
        self.pack()
        count = self.packed
        forms = np.frombuffer(self.packed_forms, dtype=np.int32) if count else np.empty(0, np.int32)
        names = np.frombuffer(self.packed_names, dtype=np.int32) if count else np.empty(0, np.int32)
        leaf, type_name, dtype, shape, elements = self._form_columns()
        group = np.array([_group(name) for name in self.names] or [Group.INPUT], dtype=np.uint8)
        rows = len(slot_start) - 1
        return SlotTable(
            record=np.repeat(np.arange(rows, dtype=np.int32), np.diff(slot_start)),
            name=names,
            group=group[names],
            leaf=leaf[forms],
            type_name=type_name[forms],
            dtype=dtype[forms],
            shape=shape[forms],
            elements=elements[forms],
            statistics=np.frombuffer(self.packed_numbers, dtype=np.float64).reshape(-1, 4) if count else np.empty((0, 4)),
            present=np.frombuffer(self.packed_present, dtype=np.uint8) if count else np.empty(0, np.uint8),
            text=_sparse(count, self.text_at),
            checksum=_sparse(count, self.checksum_at),
            data_name=_sparse(count, self.data_name_at),
            file=np.full(count, NO_FILE, np.int32),
        )

    def _form_columns(self) -> tuple[UInt8, Int32, Int32, Int32, Int64]:
        forms = list(self.forms) or [(int(Leaf.NULL), None, None, None)]
        return (
            np.array([leaf for leaf, _, _, _ in forms], dtype=np.uint8),
            np.array([-1 if name is None else self.types[name] for _, name, _, _ in forms], dtype=np.int32),
            np.array([-1 if dtype is None else self.dtypes[dtype] for _, _, dtype, _ in forms], dtype=np.int32),
            np.array([-1 if shape is None else self.shapes[shape] for _, _, _, shape in forms], dtype=np.int32),
            np.array([_elements(leaf, shape) for leaf, _, _, shape in forms], dtype=np.int64),
        )


def _group(name: str) -> Group:
    word = name.split(".", 1)[0]
    return {"input": Group.INPUT, "parameters": Group.PARAMETERS, "output": Group.OUTPUT}.get(word, Group.PARAMETERS_GRAD)


def _elements(leaf: int, shape: tuple[int, ...] | None) -> int:
    if leaf == Leaf.NUMBER:
        return 1
    return math.prod(shape) if shape is not None and is_possible(shape) else 0


def _sparse(count: int, pairs: Sequence[tuple[int, int]]) -> Int32:
    column = np.full(count, -1, dtype=np.int32)
    if pairs:
        at = np.array(pairs, dtype=np.int64)
        column[at[:, 0]] = at[:, 1]
    return column
