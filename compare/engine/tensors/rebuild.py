"""Names of a .pt file → their meaning for a description, by the table in ``rebuild.yaml``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeGuard

from msgspec import yaml

from compare.engine.errors import DumpError, printable
from compare.engine.tensors.description import ELEMENT_TYPES, LARGEST_INT, Description

BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Table:
    """``rebuild.yaml``; the file explains itself."""

    tensors: dict[str, dict[str, int]]
    wrappers: dict[str, int]
    calls: dict[str, dict[str, int]]
    storages: dict[str, str]
    dtypes: dict[str, str]
    beside: frozenset[str]
    refused: dict[str, str]


@lru_cache(maxsize=1)
def table() -> Table:
    document: dict[str, Any] = yaml.decode(Path(__file__).with_name("rebuild.yaml").read_bytes())
    return Table(**{**document, "beside": frozenset(document["beside"])})


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A function or class that the file names: a text and nothing else."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    dtype: str
    key: str
    bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """What a call of a name in ``beside`` gives; nobody looks into it."""

    name: Name


class Rebuilder:
    """Says what names, persistent ids and calls mean. ``offset`` is where in the program they stand, for the refusals."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.table = table()

    def name(self, text: str, offset: int) -> Name:
        """Raises DumpError (tensor_name, or the refusal of a kind of tensor that is not read)."""
        known = self.table
        code = known.refused.get(text)
        if code == "tensor_dtype":
            raise DumpError(code, self.place, dtype=text.removeprefix("torch."))
        if code is not None:
            raise DumpError(code, self.place)
        if not any(text in names for names in (known.tensors, known.wrappers, known.calls, known.storages, known.dtypes, known.beside)):
            raise DumpError("tensor_name", self.place, name=printable(text), offset=offset)
        return Name(text)

    def storage(self, identity: object, offset: int) -> Storage:
        """The meaning of ``("storage", class, key, device, elements)``. Raises DumpError (tensor_description, tensor_no_data)."""
        match identity:
            case ("storage", Name(text), str(key), str(device), int(elements)) if text in self.table.storages and elements >= 0:
                if device.startswith("meta"):
                    raise DumpError("tensor_no_data", self.place)
                dtype = self.table.storages[text]
                size = elements * (1 if dtype == BYTES else ELEMENT_TYPES[dtype].width)
                if size <= LARGEST_INT:
                    return Storage(dtype, key, size)
        raise self.broken(offset, "a persistent id names no storage")

    def call(self, function: object, arguments: object, offset: int) -> object:
        """What calling ``function`` would describe. Raises DumpError (tensor_description, tensor_name)."""
        if not isinstance(function, Name) or not isinstance(arguments, tuple):
            raise self.broken(offset, "something is called that is no function")
        if (order := self.table.calls.get(function.text)) is not None:
            inner, inner_arguments = _pick(arguments, order["function"]), _pick(arguments, order["arguments"])
            if not isinstance(inner, Name) or inner.text not in self.table.tensors or not isinstance(inner_arguments, tuple):
                raise self.broken(offset, f"{function.text} calls no function that makes a tensor")
            function, arguments = inner, inner_arguments
        if (order := self.table.tensors.get(function.text)) is not None:
            return self._tensor({part: _pick(arguments, position) for part, position in order.items()}, offset)
        if (position := self.table.wrappers.get(function.text)) is not None:
            tensor = _pick(arguments, position)
            if not isinstance(tensor, Description):
                raise self.broken(offset, f"{function.text} got no tensor")
            return tensor
        if function.text in self.table.beside:
            return Beside(function)
        raise self.broken(offset, f"{function.text} is called and is no function")

    def _tensor(self, parts: dict[str, object], offset: int) -> Description:
        storage, start, shape, stride = parts["storage"], parts["offset"], parts["shape"], parts["stride"]
        if not isinstance(storage, Storage):
            raise self.broken(offset, "a tensor has no storage")
        if not _is_count(start) or not _are_counts(shape) or not _are_counts(stride):
            raise self.broken(offset, "a shape, stride or offset is no whole number")
        dtype = storage.dtype
        named = parts.get("dtype")
        if isinstance(named, Name) and named.text in self.table.dtypes:
            dtype = self.table.dtypes[named.text]
        if dtype == BYTES or (named is not None and not isinstance(named, Name)):
            raise self.broken(offset, "a tensor does not say its type")
        metadata = parts.get("metadata")
        bits = metadata if isinstance(metadata, dict) else {}
        return Description(
            dtype=dtype,
            shape=shape,
            stride=stride,
            offset=start,
            storage=storage.key,
            storage_bytes=storage.bytes,
            conjugate=bits.get("conj") is True,
            negative=bits.get("neg") is True,
        )

    def broken(self, offset: int, detail: str) -> DumpError:
        return DumpError("tensor_description", self.place, offset=offset, detail=detail)


def _pick(arguments: tuple[object, ...], position: int) -> object:
    return arguments[position] if position < len(arguments) else None


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_counts(value: object) -> TypeGuard[tuple[int, ...]]:
    return isinstance(value, tuple) and all(map(_is_count, value))
