"""Our own interpreter of the pickle instructions that torch.save writes for a tensor.

``pickletools.genops`` takes the program apart and executes nothing; here the few instructions that a tensor needs move plain values about
on a stack. Functions and classes stay names, calls are looked up in a table (``rebuild``). Every other instruction is refused by its name.
"""

from __future__ import annotations

import pickletools
from collections.abc import Iterator

from compare.engine.errors import DumpError
from compare.engine.tensors.rebuild import Beside, Name, Rebuilder


class _Mark:
    """What MARK puts on the stack."""


MARK = _Mark()
IGNORED = frozenset({"PROTO", "FRAME"})
CONSTANTS: dict[str, object] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
# The argument itself is the value.
VALUES = frozenset({"BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"})
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
PUT = frozenset({"BINPUT", "LONG_BINPUT"})
GET = frozenset({"BINGET", "LONG_BINGET"})


def interpret(program: bytes, place: str) -> object:
    """The value that a pickle describes: a Description, or numbers, texts, tuples, lists and dicts of such.

    Time and memory are bounded by the length of the program. Raises DumpError (tensor_instruction, tensor_name, tensor_description, and
    what the table refuses).
    """
    return _Machine(place).run(program)


class _Machine:
    def __init__(self, place: str) -> None:
        self.place = place
        self.rebuilder = Rebuilder(place)
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}
        self.offset = 0

    def run(self, program: bytes) -> object:
        instructions = pickletools.genops(program)
        while (instruction := self._next(instructions))[0] != "STOP":
            self._step(*instruction)
        if self.offset + 1 != len(program):
            raise self.broken("bytes follow its end")
        value = self.pop()
        if self.stack:
            raise self.broken("values are left over")
        return value

    def _next(self, instructions: Iterator[tuple[pickletools.OpcodeInfo, object, int | None]]) -> tuple[str, object]:
        try:
            opcode, argument, position = next(instructions)
        except ValueError as error:
            raise self.broken("the next instruction is cut off, unknown or missing") from error
        self.offset = position or 0
        return opcode.name, argument

    def _step(self, name: str, argument: object) -> None:
        if name in VALUES:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in PUT and isinstance(argument, int):
            self.memo[argument] = self.top()
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.top()
        elif name in GET and isinstance(argument, int):
            if argument not in self.memo:
                raise self.broken(f"value {argument} was never kept")
            self.stack.append(self.memo[argument])
        elif name == "GLOBAL":
            self.stack.append(self.rebuilder.name(str(argument).replace(" ", ".", 1), self.offset))
        elif name == "STACK_GLOBAL":
            attribute, module = self.pop(), self.pop()
            if not isinstance(attribute, str) or not isinstance(module, str):
                raise self.broken("a name is no text")
            self.stack.append(self.rebuilder.name(f"{module}.{attribute}", self.offset))
        elif name == "MARK":
            self.stack.append(MARK)
        elif name == "TUPLE":
            self.stack.append(tuple(self.pop_to_mark()))
        elif name in TUPLES:
            self.stack.append(tuple([self.pop() for _ in range(TUPLES[name])][::-1]))
        elif name == "EMPTY_DICT":
            self.stack.append({})
        elif name == "EMPTY_LIST":
            self.stack.append([])
        elif name in ("SETITEM", "SETITEMS"):
            self.set_items([self.pop(), self.pop()][::-1] if name == "SETITEM" else self.pop_to_mark())
        elif name in ("APPEND", "APPENDS"):
            items = [self.pop()] if name == "APPEND" else self.pop_to_mark()
            target = self.top()
            if not isinstance(target, list):
                raise self.broken("something is appended to no list")
            target.extend(items)
        elif name == "BINPERSID":
            self.stack.append(self.rebuilder.storage(self.pop(), self.offset))
        elif name == "REDUCE":
            arguments, function = self.pop(), self.pop()
            self.stack.append(self.rebuilder.call(function, arguments, self.offset))
        elif name == "BUILD":
            self.pop()
            if not isinstance(self.top(), Beside):
                raise self.broken("something gets attributes that may have none")
        elif name not in IGNORED:
            raise DumpError("tensor_instruction", self.place, instruction=name, offset=self.offset)

    def pop(self) -> object:
        value = self.top()
        del self.stack[-1]
        return value

    def top(self) -> object:
        if not self.stack or self.stack[-1] is MARK:
            raise self.broken("a value is missing")
        return self.stack[-1]

    def pop_to_mark(self) -> list[object]:
        for position in range(len(self.stack) - 1, -1, -1):
            if self.stack[position] is MARK:
                items = self.stack[position + 1 :]
                del self.stack[position:]
                return items
        raise self.broken("a mark is missing")

    def set_items(self, items: list[object]) -> None:
        target = self.top()
        if isinstance(target, Beside):
            return  # hooks and attributes: nobody looks into them
        if not isinstance(target, dict) or len(items) % 2:
            raise self.broken("something is set in no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int):  # hashing a tuple nested deep enough would end the process
                raise self.broken("a key is neither text nor number")
            target[key] = value

    def broken(self, detail: str) -> DumpError:
        return self.rebuilder.broken(self.offset, detail)


def kind_of(value: object) -> str:
    """What a value that is no tensor is called in a message: ``OrderedDict`` of a state dict, ``list``, ``None``."""
    if isinstance(value, Beside):
        value = value.name
    if isinstance(value, Name):
        return value.text.rpartition(".")[2]
    return "None" if value is None else type(value).__name__
