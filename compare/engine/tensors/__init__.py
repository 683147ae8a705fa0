"""Tensor files → numbers, without torch and without executing a pickle.

``open_tensor`` tells ``.pt`` from ``.npy``. ``pt`` finds the records of a .pt file (``records``), interprets its pickle (``opcodes``) and
looks up names in a table (``rebuild.yaml``); ``npy`` reads a header. Both give a ``Description``, a view of a storage that is checked
against the storage's size before a number is read, and the storage as mapped ``memory``. ``file`` makes arrays and chunks of it,
``statistics`` takes one pass.
"""

from __future__ import annotations

from compare.engine.tensors.description import Description
from compare.engine.tensors.file import TensorFile, open_tensor
from compare.engine.tensors.held import HeldTensors
from compare.engine.tensors.statistics import Statistics, statistics

__all__ = ["Description", "HeldTensors", "Statistics", "TensorFile", "open_tensor", "statistics"]
