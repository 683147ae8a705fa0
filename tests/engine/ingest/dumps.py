"""Dumps that tests read: small builders of files, folders and archives, and hypothesis strategies for whole dump.json files."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from compare.engine.errors import DumpError
from compare.engine.ingest import Source, read_side
from compare.engine.model import Dump, Side

Result = TypeVar("Result")

CORPUS = Path(__file__).parents[2] / "data" / "corpus"

TENSOR = {
    "type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [1, 12, 64],
    "Max": 0.5, "Min": -0.25, "Mean": 0.001, "Norm": 2.5, "requires_grad": True,
}  # fmt: skip
CALL = {"input_args": [TENSOR], "input_kwargs": {}, "output": [TENSOR]}


def call(*arguments: Any, **members: Any) -> dict[str, Any]:
    return {"input_args": list(arguments), "input_kwargs": {}, "output": [TENSOR]} | members


def dump_json(records: Mapping[str, Any] | None = None, **members: Any) -> bytes:
    head = {"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": None}
    data = {"Module.model.fc.Linear.forward.0": CALL} if records is None else records
    return json.dumps(head | {"data": data} | members, indent=1).encode()


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return held.getvalue()


def tar_bytes(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def read(folder: Path, files: Mapping[str, bytes], name: str = "side") -> Side:
    """Read the files as a browser would send them: names relative, one source each."""
    sources = []
    for number, (sent, content) in enumerate(files.items()):
        path = folder / f"{number}.bin"
        path.write_bytes(content)
        sources.append(Source(path, sent))
    return read_side(sources, name)


def read_one(folder: Path, content: bytes, **side_files: bytes) -> Dump:
    """The dump of one dump.json, with construct=… and stack=… beside it."""
    return read(folder, {"dump.json": content} | {f"{name}.json": held for name, held in side_files.items()}).dumps[0]


def outcome(read_it: Callable[[], Result]) -> Result | DumpError:
    """What reading gives, or the refusal; anything else that is raised is a bug and gets through."""
    try:
        return read_it()
    except DumpError as error:
        return error


# --- hypothesis -----------------------------------------------------------------------------------------------------------------------

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**63), 2**64),
    st.none(),
    st.booleans(),
    st.sampled_from(["nan", "NaN", "inf", "-Inf", "1.5", "N/A", "None"]),
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
NAME_PARTS = st.one_of(st.sampled_from(["model", "layers", "0", "q_proj", 'a"b', "back\\slash", "{", "]", ",", "ключ", "层"]), TEXTS)

TENSORS = st.fixed_dictionaries(
    {"type": st.sampled_from(["torch.Tensor", "mindspore.Tensor", "torch.distributed.tensor.DTensor"])},
    optional={
        "dtype": st.one_of(st.sampled_from(["torch.bfloat16", "torch.int64", "Float32"]), st.none(), st.just(16)),
        "shape": st.one_of(
            st.lists(st.integers(0, 2**40), max_size=4),
            st.sampled_from([[-1, 2], ["j1", 4], [[2, 3]], [2.0], [True], [10**30], "[2, 3]", 6, {"0": 2}]),
            st.none(),
        ),
        "Max": NUMBERS,
        "Min": NUMBERS,
        "Mean": NUMBERS,
        "Norm": NUMBERS,
        "requires_grad": st.booleans(),
        "md5": st.one_of(st.sampled_from(["0a1b2c3d", "0xffffffffffffffff"]), st.none(), st.just(305419896)),
        "data_name": TEXTS,
        "device_mesh": st.just([[0, 1]]),
        "placements": st.just([{"Shard": {"dim": 0}}]),
        "tensor_stat_index": st.integers(0, 9),
        "md5_index": st.integers(0, 9),
    },
)
TYPELESS = st.fixed_dictionaries(
    {}, optional={"type": st.just(7), "dtype": st.just("torch.bfloat16"), "shape": st.sampled_from([[2, 3], []]), "Max": NUMBERS}
)
PLAIN = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["int", "float", "bool", "str", "numpy.int64", "torch.dtype"]), "value": NUMBERS | TEXTS}
    ),
    st.fixed_dictionaries({"type": st.just("slice"), "value": st.lists(st.integers(0, 9) | st.none(), min_size=3, max_size=3)}),
    st.fixed_dictionaries({"type": st.just("torch.Size"), "value": st.lists(st.integers(0, 99), max_size=3)}),
    st.just({"type": "ellipsis", "value": "..."}),
    st.just({"type": "torch.memory_format", "format": "torch.contiguous_format"}),
    st.just({"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "1f2e3d4c"}),
    st.just({"type": "torch.Tensor", "tensor_stat_index": 3}),
)
LEAVES = st.one_of(st.none(), TENSORS, PLAIN, TYPELESS)
ARGUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(TEXTS, inner, max_size=3),
        st.fixed_dictionaries(
            {"class_type": st.just("torch.distributed.P2POp"), "tensor": inner, "op": st.just("isend"), "peer": st.just(1)}
        ),
        st.just(True),
        st.just("bare"),
        st.just(7),
    ),
    max_leaves=6,
)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "input_args": st.lists(ARGUMENTS, max_size=4),
        "input_kwargs": st.dictionaries(TEXTS, ARGUMENTS, max_size=3),
        "input": st.lists(ARGUMENTS, max_size=3),
        "output": st.lists(ARGUMENTS, max_size=3) | st.none(),
        "parameters": st.dictionaries(st.sampled_from(["weight", "bias", "w13_weight"]), LEAVES, max_size=2),
        "is_recompute": st.booleans(),
        "is_nan": st.integers(0, 1),
    },
)
GRADIENTS = st.dictionaries(
    st.sampled_from(["weight", "bias", "_flat_param", "is_recompute"]), st.lists(LEAVES, max_size=2) | LEAVES | st.booleans(), max_size=3
)
CALL_NAMES = st.builds(
    lambda head, parts, tail: ".".join([head, *parts, tail]),
    st.sampled_from(["Module", "Cell", "Functional", "Tensor"]),
    st.lists(NAME_PARTS, min_size=1, max_size=3),
    st.sampled_from(["Linear.forward.0", "Linear.backward.12", "3.forward", "0.backward", "optimizer"]),
)
GRADIENT_NAMES = st.builds(
    lambda part, tail: f"Module.{part}.Linear.parameters_grad{tail}", st.sampled_from("abc"), st.sampled_from(["", ".0", ".7"])
)
DEBUG_NAMES = st.builds(lambda part, count: f"{part}.{count}.debug", st.sampled_from(["loss", "hidden_grad", "a.b"]), st.integers(0, 9))
RECORDS = st.tuples(
    st.dictionaries(CALL_NAMES, CALLS | st.booleans(), max_size=5),
    st.dictionaries(GRADIENT_NAMES, GRADIENTS, max_size=2),
    st.dictionaries(DEBUG_NAMES, ARGUMENTS, max_size=2),
).map(lambda parts: parts[0] | parts[1] | parts[2])


@st.composite
def dump_files(draw: st.DrawFn) -> bytes:
    """A dump.json as some writer may write it: members in any order, indented or not, with or without escapes."""
    records = draw(RECORDS)
    members: list[tuple[str, Any]] = [("task", "statistics"), ("level", "mix"), ("framework", "pytorch"), ("data", records)]
    if draw(st.booleans()):
        members.append(("other", draw(st.sampled_from([None, [1, [2, {"a": "}"}]], {"data": {"x": 1}}, 'te"xt']))))
    members = draw(st.permutations(members))
    indent = draw(st.sampled_from([None, 0, 1, 2]))
    separators = draw(st.sampled_from([None, (",", ":"), (" ,\n", "\t: ")]))
    text = json.dumps(dict(members), indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))
    return (draw(st.sampled_from(["", " ", "\n"])) + text + draw(st.sampled_from(["", "\n", " \r\n"]))).encode("utf-8")
