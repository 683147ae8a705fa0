"""Writes what a model does as msprobe 26.2 writes it: records in completion order, structure in start order, shared stacks."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.simulator.precision import Array, Precision

SINGLE = Precision("float32")
TORCH_MODULE = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"
INNER = f"File {TORCH_MODULE}, line 1884, in _call_impl, \n return inner()"
OUTER = f"File {TORCH_MODULE}, line 1778, in _wrapped_call_impl, \n return self._call_impl(*args, **kwargs)"


@dataclass(frozen=True)
class Tagged:
    """A tensor that is not of the model's dtype, or carries no gradient where others do."""

    values: Array
    precision: Precision | None = None
    grad: bool | None = None


def single(values: Array, grad: bool | None = None) -> Tagged:
    return Tagged(values, SINGLE, grad)


def statistics(values: Array, precision: Precision) -> dict[str, Any]:
    """Max, Min, Mean, Norm computed in the tensor's own dtype; integers and booleans have no Mean and Norm."""
    if values.size == 0:
        return {"Max": None, "Min": None, "Mean": None, "Norm": None}
    if values.dtype == np.bool_:
        return {"Max": bool(values.any()), "Min": bool(values.all()), "Mean": None, "Norm": None}
    if np.issubdtype(values.dtype, np.integer):
        return {"Max": int(values.max()), "Min": int(values.min()), "Mean": None, "Norm": None}
    flat = np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
    if values.ndim == 0:
        one = float(flat[0])
        return {"Max": one, "Min": one, "Mean": one, "Norm": one}
    with np.errstate(invalid="ignore", over="ignore"):
        largest, smallest = np.float32(flat.max()), np.float32(flat.min())
        mean = precision.round(np.mean(flat, dtype=np.float32)[None])[0]
        norm = precision.round(np.sqrt(np.dot(flat, flat), dtype=np.float32)[None])[0]
    return {"Max": float(largest), "Min": float(smallest), "Mean": float(mean), "Norm": float(norm)}


@dataclass
class Call:
    """A module call in progress: what its code fills in before it returns."""

    name: str
    path: str
    output: list[Any] = field(default_factory=list)


class Recorder:
    """Collects one dump.

    `wrap` turns a canonical module path and class into the recorded ones. `trains` sets requires_grad. With `mix` API calls are
    recorded too. `high` is the dumper's precision setting under which Mean and Norm are null. `watched` paths keep their first call's
    inputs and outputs (arrays) in `seen`.
    """

    def __init__(
        self,
        precision: Precision,
        *,
        trains: bool,
        mix: bool,
        wrap: Callable[[str, str], tuple[str, str]],
        source: str,
        watched: frozenset[str] = frozenset(),
        high: bool = False,
    ) -> None:
        self.precision, self.trains, self.mix, self.wrap, self.source, self.watched = precision, trains, mix, wrap, source, watched
        self.high = high
        self.data: dict[str, Any] = {}
        self.construct: dict[str, str | None] = {}
        self.tensors: list[tuple[dict[str, Any], Array]] = []
        self.seen: dict[str, tuple[list[Any], list[Any]]] = {}
        self._open: list[str] = []
        self._pending: list[tuple[str, str | None]] = []
        self._calls: dict[str, int] = {}
        self._stacks: dict[str, tuple[list[str], list[str]]] = {}
        self._cache: OrderedDict[tuple[int, str], tuple[Array, dict[str, Any]]] = OrderedDict()

    # -- leaves ------------------------------------------------------------------------------------------------------
    def leaf(self, value: Any, grad: bool | None = None) -> Any:
        if isinstance(value, Tagged):
            return self._tensor(value.values, value.precision or self.precision, value.grad if value.grad is not None else grad)
        if isinstance(value, np.ndarray):
            return self._tensor(value, self.precision, grad)
        if isinstance(value, bool | int | float | str):
            return {"type": type(value).__name__, "value": value}
        if isinstance(value, dict):
            return {key: self.leaf(item, grad) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.leaf(item, grad) for item in value]
        return None

    def _tensor(self, values: Array, precision: Precision, grad: bool | None) -> dict[str, Any]:
        if values.dtype == np.bool_:
            dtype, floating = "torch.bool", False
        elif np.issubdtype(values.dtype, np.integer):
            dtype, floating = f"torch.{values.dtype.name}", False
        else:
            dtype, floating = precision.torch_name, True
        key = (id(values), dtype)
        hit = self._cache.get(key)
        if hit is None or hit[0] is not values:
            numbers = statistics(values, precision)
            hit = (values, numbers | {"Mean": None, "Norm": None} if self.high and values.ndim else numbers)
            self._cache[key] = hit
            if len(self._cache) > 64:
                self._cache.popitem(last=False)
        wants = floating and self.trains if grad is None else grad
        leaf = {"type": "torch.Tensor", "dtype": dtype, "shape": list(values.shape), **hit[1], "requires_grad": wants}
        if values.size:
            self.tensors.append((leaf, values.copy()))  # whoever holds the array may change it in place
        return leaf

    # -- forward -----------------------------------------------------------------------------------------------------
    def module_name(self, path: str, kind: str, direction: str = "forward") -> str:
        wrapped, wrapped_class = self.wrap(path, kind)
        return ".".join(part for part in ("Module", wrapped, wrapped_class, direction) if part)

    @contextmanager
    def module(
        self, path: str, kind: str, args: list[Any], kwargs: dict[str, Any] | None = None, parameters: dict[str, Array] | None = None
    ) -> Iterator[Call]:
        """Record one forward call. Inputs are read on entry, as a pre-hook does; the record is written when the call returns."""
        base = self.module_name(path, kind)
        number = self._calls.get(base, 0)
        self._calls[base] = number + 1
        call = Call(f"{base}.{number}", path)
        parent = self._open[-1] if self._open else None
        if self.mix:
            self._pending.append((call.name, parent))
        else:
            self.construct[call.name] = parent
        self._stack(call.name, re.sub(r"\.\d+\.", ".N.", path) or kind)
        record = {"input_args": self.leaf(args), "input_kwargs": self.leaf(kwargs or {})}
        self._open.append(call.name)
        yield call
        self._open.pop()
        self._settle()
        record["output"] = self.leaf(call.output)
        record["parameters"] = self.leaf(parameters or {})
        self.data[call.name] = record
        if path in self.watched and path not in self.seen:
            self.seen[path] = (list(args), list(call.output))

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        """Calls made here are children of `name` (a recomputation runs inside a backward record)."""
        self._open.append(name)
        yield
        self._open.pop()

    def _settle(self) -> None:
        for name, parent in self._pending:
            self.construct[name] = parent
        self._pending.clear()

    def api(self, name: str, args: list[Any], output: list[Any], kwargs: dict[str, Any] | None = None) -> None:
        """Record one API call, at level mix."""
        if self.mix:
            full = self._count(name)
            self._stack(full, f"{re.sub(r'.*Module', '', self._open[-1] if self._open else 'root')}/{name}")
            self.data[full] = {"input_args": self.leaf(args), "input_kwargs": self.leaf(kwargs or {}), "output": self.leaf(output)}

    def quiet(self, *names: str) -> None:
        """API calls that the default risk level drops: counted and in the structure, at level mix, but not dumped."""
        for name in names if self.mix else ():
            self._count(name)

    def _count(self, api: str) -> str:
        """Number the call and put it into the structure, before the modules that it is the first to be called in."""
        number = self._calls.get(api, 0)
        self._calls[api] = number + 1
        full = f"{api}.{number}.forward"
        self.construct[full] = self._open[-1] if self._open else None
        self._settle()
        return full

    # -- backward ----------------------------------------------------------------------------------------------------
    def begin_backward(self, path: str, kind: str, parent: str | None, number: int = 0) -> str:
        name = f"{self.module_name(path, kind, 'backward')}.{number}"
        self.construct[name] = parent
        return name

    def end_backward(self, name: str, received: list[Any], returned: list[Any]) -> None:
        """`received` = gradients of the outputs, `returned` = gradients of the inputs."""
        self.data[name] = {"input": self.leaf(received, False), "output": self.leaf(returned, False)}

    def parameters_grad(self, path: str, kind: str, gradients: dict[str, Array | None], number: int = 0) -> None:
        base = self.module_name(path, kind, "parameters_grad")
        self.data[f"{base}.{number}"] = {name: [self.leaf(value, False)] for name, value in sorted(gradients.items())}

    # -- files -------------------------------------------------------------------------------------------------------
    def _stack(self, name: str, place: str) -> None:
        if place not in self._stacks:
            line, code = 100 + sum(place.encode()) % 400, place.rpartition(".")[2]
            here = f"File {self.source}, line {line}, in forward, \n hidden_states = self.{code}(hidden_states)"
            self._stacks[place] = ([], [INNER, here, OUTER])
        self._stacks[place][0].append(name)

    def write(self, folder: Path, *, tensors: bool = False) -> None:
        """Write dump.json, construct.json and stack.json into `folder`, made here; with `tensors` the values too, bfloat16 as float32
        as MindSpore's dumper does."""
        folder.mkdir(parents=True, exist_ok=True)
        if tensors:
            (folder / "dump_tensor_data").mkdir(exist_ok=True)
            for number, (leaf, values) in enumerate(self.tensors):
                leaf["data_name"] = f"tensor{number}.npy"
                np.save(folder / "dump_tensor_data" / leaf["data_name"], values)
        dump = {
            "task": "tensor" if tensors else "statistics",
            "level": "mix" if self.mix else "L0",
            "framework": "pytorch",
            "dump_data_dir": None,
            "data": self.data,
        }
        shared = {str(index): [names, frames] for index, (names, frames) in enumerate(self._stacks.values())}
        for name, content in (("dump.json", dump), ("construct.json", self.construct), ("stack.json", shared)):
            (folder / name).write_text(json.dumps(content, indent=1), encoding="utf-8")
