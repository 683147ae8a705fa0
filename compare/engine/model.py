"""The words of the product as column tables and frozen dataclasses.

A dump of 50,000 records holds about 150,000 slots, so nothing here is one object a slot: a table is a set of equally long columns, a row is
an index into them, and repeated text is stored once and referred to by its index (-1 = none). Tables are written once and never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

UInt8: TypeAlias = NDArray[np.uint8]
Int32: TypeAlias = NDArray[np.int32]
Int64: TypeAlias = NDArray[np.int64]
Float32: TypeAlias = NDArray[np.float32]
Float64: TypeAlias = NDArray[np.float64]
Bool: TypeAlias = NDArray[np.bool_]
JsonObject: TypeAlias = dict[str, Any]


class RecordKind(IntEnum):
    """What one key of ``dump.json["data"]`` names."""

    MODULE = 0
    API = 1
    PARAMETERS_GRAD = 2
    OTHER = 3


class Direction(IntEnum):
    """Forward or backward call; a ``parameters_grad`` entry counts as backward."""

    FORWARD = 0
    BACKWARD = 1


class Group(IntEnum):
    """Which member of a record a slot came from (``input_args`` and ``input_kwargs`` are both INPUT)."""

    INPUT = 0
    PARAMETERS = 1
    OUTPUT = 2
    PARAMETERS_GRAD = 3


class Leaf(IntEnum):
    """What a slot holds."""

    TENSOR = 0  # has dtype and shape; statistics where they were written
    NUMBER = 1  # int, float or bool: the value stands in all four statistics
    TEXT = 2  # str, dtype, device, slice, size …: compared as text
    NULL = 3  # None, or an object the dumper does not support
    PLACEHOLDER = 4  # a deferred value that was never resolved: the dump was interrupted


class Statistic(IntEnum):
    """Column of ``SlotTable.statistics`` and bit number in ``SlotTable.present``."""

    MAX = 0
    MIN = 1
    MEAN = 2
    NORM = 3


class Packing(IntEnum):
    """How the bytes of a tensor file lie in the file that holds them."""

    PLAIN = 0  # as they are
    ZIP_STORED = 1  # behind a zip's local header
    ZIP_DEFLATED = 2
    UNREADABLE = 3  # encrypted, or packed by a method that is not read


NO_FILE, FILE_MISSING = -1, -2  # in SlotTable.file
KEPT = -1  # in TensorTable.source


@dataclass(frozen=True, slots=True)
class TensorTable:
    """One row a tensor file that a slot names and that was found: where its bytes are.

    ``source`` is the place of the holding file among the files of the input, or KEPT: the file beside the columns into which was copied
    what cannot be read in place. ``offset`` is that of the first byte (PLAIN) or of the zip's local header; ``packed`` and ``size`` are
    bytes as they lie there, the header not counted, and unpacked.
    """

    source: Int32
    offset: Int64
    packed: Int64
    size: Int64
    packing: UInt8

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class RecordTable:
    """One row a record, in the order of dump.json; then one row for every parent that only construct.json names.

    ``path`` is the raw dotted path between the prefix and the class (wrappers kept); for an API it is ``Functional.linear``.
    ``parent`` is the row of the enclosing module record or -1. ``recorded`` is False for the rows that only construct.json names: they
    have no slots. ``call`` is the number in the name (parameters_grad without a number: 0).
    """

    name: Sequence[str]
    kind: UInt8
    direction: UInt8
    call: Int32
    path: Int32  # into Dump.paths
    class_name: Int32  # into Dump.classes, -1 for an API
    parent: Int32
    recorded: Bool
    slot_start: Int64  # length rows + 1: the slots of row r are slot_start[r]:slot_start[r + 1]
    stack: Int32  # into Dump.stacks, -1 = none

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class SlotTable:
    """One row a leaf value, grouped by record, in the order input, parameters, output, parameters_grad.

    ``statistics`` is float64 of shape [slots, 4] in the order of ``Statistic``. A null statistic has its bit cleared in ``present`` and NaN
    in ``statistics``; a NaN that the dump holds has its bit set. ``elements`` is the product of the shape, 1 for a scalar, 0 when unknown.
    ``file`` is a row of Dump.tensors, NO_FILE where the dump names none, FILE_MISSING where the file that it names is not there.
    """

    record: Int32
    name: Int32  # into Dump.slot_names: "input.0", "input.hidden_states", "output.0", "parameters.weight", "parameters_grad.weight"
    group: UInt8
    leaf: UInt8
    type_name: Int32  # into Dump.types: "torch.Tensor", "int" …, -1 for null
    dtype: Int32  # into Dump.dtypes: "torch.bfloat16", -1 = none
    shape: Int32  # into Dump.shapes, -1 = none
    elements: Int64
    statistics: Float64
    present: UInt8
    text: Int32  # into Dump.texts: the value of a TEXT leaf, the placements of a sharded TENSOR, -1 = none
    checksum: Int32  # into Dump.texts: CRC-32 or xor digits, -1 = none
    data_name: Int32  # into Dump.texts: the name of its tensor file, ``.input.0.pt`` short for that behind the record's name; -1 = none
    file: Int32

    def __len__(self) -> int:
        return len(self.record)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was taken otherwise than it stands in a file: how often, and the first of it (``ingest/notes.py``)."""

    code: str
    place: str  # the file
    count: int
    record: str  # "" = the file itself
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dump:
    """What one process wrote for one step."""

    place: str  # where it was found, for messages: "train.zip/step0/rank0/dump.json"
    task: str
    level: str
    framework: str
    stage: str | None
    step: int | None
    rank: int | None
    has_construct: bool
    has_stack: bool
    records: RecordTable
    slots: SlotTable
    tensors: TensorTable
    paths: Sequence[str]
    classes: Sequence[str]
    slot_names: Sequence[str]
    types: Sequence[str]
    dtypes: Sequence[str]
    shapes: Sequence[tuple[int, ...]]
    texts: Sequence[str]
    stacks: Sequence[str]  # frames of one stack joined by "\x1e", innermost first
    notes: Sequence[Note] = ()

    def data_name(self, slot: int) -> str | None:
        """The name of a slot's tensor file (hostile text), None where the dump names none."""
        index = int(self.slots.data_name[slot])
        if index < 0:
            return None
        name = self.texts[index]
        return self.records.name[int(self.slots.record[slot])] + name if name.startswith(".") else name


@dataclass(frozen=True, slots=True)
class LeftAside:
    """A member of an upload that was not read, with the reason as a code the browser translates."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class KeyData:
    """The key data of a reinforcement-learning run: one row a table, by key (pipeline order), step, rank, micro_step, id.

    ``step``, ``rank`` and ``micro_step`` are -1 where the tree has no such folder. ``id`` tells the entries of a list ("0", "1" …) or of an
    object (their names) apart; a table of its own is "0". The numbers of row r are the bytes of ``data`` from ``start[r]`` on, row-major,
    of ``dtype`` and ``shape``, little-endian; ``start`` is -1 where there is no .npy. ``statistics`` [tables, 4] in the order of
    ``Statistic``
    and ``present`` are those of the .json, as in ``SlotTable``. ``shape`` is the .npy's, else the .json's. ``problem``: why the .npy was
    not read, as JSON ``{code, params, message}``.
    """

    keys: Sequence[str]
    key: Int32  # into keys
    step: Int32
    rank: Int32
    micro_step: Int32
    ids: Sequence[str]
    id: Int32  # into ids
    dtypes: Sequence[str]
    dtype: Int32  # into dtypes: numpy's names ("float32"), -1 = no numbers
    shapes: Sequence[tuple[int, ...]]
    shape: Int32  # into shapes, -1 = not known
    start: Int64
    statistics: Float64
    present: UInt8
    problems: Sequence[str]
    problem: Int32  # into problems, -1 = none
    data: UInt8

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What the trainer was told: nested objects and lists as they were read, and where from."""

    path: str
    content: JsonObject


@dataclass(frozen=True, slots=True)
class LoopData:
    """What a run holds besides dumps. ``requests``: which process, step and rank served or trained on a single request
    (``keydata.requests``)."""

    key_data: KeyData | None = None
    configuration: Configuration | None = None
    requests: Sequence[JsonObject] = ()


@dataclass(frozen=True, slots=True)
class UnreadableDump:
    """A dump that is there and cannot be read, while others of its run can: cut off where its process was killed, for one."""

    place: str
    stage: str | None
    step: int | None
    rank: int | None
    error: JsonObject  # {code, params, message, where}


@dataclass(frozen=True, slots=True)
class Side:
    """All dumps of one run, in pipeline order: by stage, step, rank."""

    name: str
    dumps: Sequence[Dump]
    unreadable: Sequence[UnreadableDump]
    left_aside: Sequence[LeftAside]
    digest: str  # sha256 over the bytes of every member read, in reading order: equal digests = the same input
    loop: LoopData = field(default_factory=LoopData)
