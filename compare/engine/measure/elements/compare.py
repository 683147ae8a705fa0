"""Two ends of one layout → their metrics, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compare.engine.measure.elements.layout import Layout
from compare.engine.measure.elements.metrics import BLOCK, ORDERED, WIDEST, Metrics
from compare.engine.tensors.description import ELEMENT_TYPES, ElementType

SIGNIFICAND = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8, "float8_e4m3fn": 4, "float8_e5m2": 3}


def compared(layout: Layout, types: tuple[str, str] = ("", ""), tell: Callable[[int], None] = lambda _: None) -> Metrics:
    """``types``: names of the types that the tensors had before they were written, where they are known. ``tell`` hears of the elements
    done, block by block; what it raises ends the pass.
    """
    left, right = layout.left, layout.right
    rows, columns = left.shape
    stored = left.element, right.element
    metrics = Metrics(
        rows, columns, _coarser([*stored, *(ELEMENT_TYPES[name] for name in types if name in ORDERED)]), stored[0] == stored[1]
    )
    height = max(1, BLOCK // max(min(columns, WIDEST), 1))
    for row in range(0, rows, height):
        tall = min(height, rows - row)
        for column in range(0, columns, WIDEST):
            wide = min(WIDEST, columns - column)
            metrics.add(left.block(row, tall, column, wide), right.block(row, tall, column, wide), row, column)
            tell(tall * wide)
    return metrics


def _coarser(elements: Sequence[ElementType]) -> ElementType | None:
    """The type whose steps a difference is counted in: the one with the fewest significand bits. None where one has no steps."""
    if any(element.name not in ORDERED for element in elements):
        return None
    return min(elements, key=lambda element: SIGNIFICAND[element.name])
