"""What the reader should know of tensor files: which could not be used, and that none were sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compare.engine.diagnose.case import Case, module_name
from compare.engine.diagnose.finding import Finding
from compare.engine.diagnose.words import Text, both, counted
from compare.engine.errors import printable
from compare.engine.measure.elements.table import LAYOUTS, State
from compare.engine.model import FILE_MISSING

MOST_FILES = 12


def tensor_findings(cases: Sequence[Case]) -> Iterator[Finding]:
    measured = [case for case in cases if case.differences.tensors is not None]
    if not measured:
        yield from _not_sent(cases)
        return
    yield from _unusable(measured)
    yield from _missing(measured)
    yield from _unpadded(measured)
    yield from _first_rows(measured)


def _not_sent(cases: Sequence[Case]) -> Iterator[Finding]:
    """Both sides wrote tensors, but not both sent them: statistics are what was compared."""
    named = [any(bool((case.dumps[side].slots.data_name >= 0).any()) for case in cases) for side in (0, 1)]
    there = [any(len(case.dumps[side].tensors) > 0 for case in cases) for side in (0, 1)]
    if not all(named) or all(there):
        return
    yield Finding(
        "tensors_not_sent",
        "info",
        both(
            "Both dumps name tensor files, but they were not all sent: the statistics were compared. With the files each tensor can be "
            "compared element by element",
            "两侧 dump 都引用了张量文件，但没有全部上传，因此比较的是统计量。上传这些文件后即可逐元素比较",
        ),
        evidence={name: bool(sent) for name, sent in zip(("left", "right"), there, strict=True)},
    )


def _unusable(cases: Sequence[Case]) -> Iterator[Finding]:
    faults = [(case, fault) for case in cases for fault in (case.differences.tensors.faults if case.differences.tensors else ())]
    if not faults:
        return
    files = [
        {"side": ("left", "right")[fault.side], "file": printable(fault.file), "code": fault.code, "params": fault.params}
        for _, fault in faults[:MOST_FILES]
    ]
    first = f"{files[0]['file']} ({files[0]['code']})"
    modules = dict.fromkeys(module_name(case, int(case.pairs.node[fault.pair])) for case, fault in faults)
    yield Finding(
        "tensor_files_unusable",
        "warning",
        both(
            f"{counted(len(faults), 'tensor file')} could not be used; the pairs concerned were compared by statistics. The first: {first}",
            f"{len(faults)} 个张量文件无法使用，其所在的配对改用统计量比较。第一个：{first}",
        ),
        list(modules)[:MOST_FILES],
        {"files": files, "count": len(faults)},
    )


def _missing(cases: Sequence[Case]) -> Iterator[Finding]:
    pairs = sum(int((case.differences.tensors.state == State.MISSING).sum()) for case in cases if case.differences.tensors is not None)
    if not pairs:
        return
    files = [sum(int((case.dumps[side].slots.file == FILE_MISSING).sum()) for case in cases) for side in (0, 1)]
    yield Finding(
        "tensor_files_missing",
        "info",
        both(
            f"{counted(pairs, 'pair has', 'pairs have')} a tensor file on one side only or on none: compared by statistics",
            f"{pairs} 对缺少一侧或两侧的张量文件，改用统计量比较",
        ),
        evidence={"pairs": pairs, "left": files[0], "right": files[1]},
    )


def _unpadded(cases: Sequence[Case]) -> Iterator[Finding]:
    """Padding that was taken out by the mask that was dumped."""
    pairs = _tensors_in(cases, "unpadded")
    if pairs:
        yield Finding(
            "unpadded",
            "info",
            both(
                "One side holds padding: its rows without a token were left out by the attention mask that was dumped",
                "一侧含有填充：已按 dump 中的 attention mask 去掉没有词元的行后再比较",
            ),
            evidence={"tensors": pairs},
        )


def first_rows(cases: Sequence[Case]) -> tuple[int, int] | None:
    """How many tokens were compared and how many the training pass saw, where it saw more than the inference pass; else None."""
    passes = next((case.sides.passes for case in cases if case.sides.passes is not None), None)
    if passes is None or not _tensors_in(cases, "first_rows"):
        return None
    return passes.infers[0].count, passes.trains[0].count


def first_rows_words(cases: Sequence[Case]) -> Text:
    """What the headline adds: nothing where all rows were compared."""
    found = first_rows(cases)
    if found is None:
        return both("", "")
    return both(
        f"; compared were the first {found[0]} of the training pass's {found[1]} tokens",
        f"；只比较了训练端前向 {found[1]} 个词元中的前 {found[0]} 个",
    )


def _first_rows(cases: Sequence[Case]) -> Iterator[Finding]:
    found = first_rows(cases)
    if found is None:
        return
    shorter, longer = found
    yield Finding(
        "first_rows",
        "info",
        both(
            f"The training pass saw {longer} tokens, the inference pass {shorter} with which these begin. Under causal attention a row "
            "does not depend on later ones, so the rows of these tokens were compared, from the tensors; statistics alone count all rows",
            f"训练端前向有 {longer} 个词元，推理端的 {shorter} 个词元是其开头部分。因果注意力下每一行不依赖其后的行，"
            "因此用张量比较这些词元对应的行；统计量包含所有行，无法这样比较",
        ),
        evidence={"tensors": _tensors_in(cases, "first_rows"), "train": longer, "infer": shorter},
    )


def _tensors_in(cases: Sequence[Case], layout: str) -> int:
    place = LAYOUTS.index(layout)
    return sum(int(np.count_nonzero(case.differences.tensors.layout == place)) for case in cases if case.differences.tensors is not None)
