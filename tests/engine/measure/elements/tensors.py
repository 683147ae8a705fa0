"""Tensor files in memory for the tests of layouts."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from compare.engine.measure.elements.layout import Layout, Side, best, layouts
from compare.engine.tensors import TensorFile, open_tensor


def tensor(values: Any) -> TensorFile:
    held = io.BytesIO()
    np.save(held, np.asarray(values))
    return open_tensor(io.BytesIO(held.getvalue()), "x.npy")


def side(*groups: Any) -> Side:
    """Each argument is a tensor, or a list of one a rank."""
    return Side([[tensor(one) for one in group] if isinstance(group, list) else [tensor(group)] for group in groups])


def chosen(left: Side, right: Side) -> Layout:
    found = best(layouts(left, right))
    assert found is not None
    return found


def whole(layout: Layout) -> tuple[Any, Any]:
    """Both ends as the matrices that are compared."""
    rows, columns = layout.left.shape
    return layout.left.block(0, rows, 0, columns), layout.right.block(0, rows, 0, columns)
