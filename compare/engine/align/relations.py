"""How the two ends of a pair belong together, why, and pairs as columns while they are being collected."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from compare.engine.align.lists import Lists
from compare.engine.model import Int32, UInt8


class Relation(IntEnum):
    SAME = 0
    CONCAT = 1
    SUM = 2
    ALIAS = 3
    SHARD_CONCAT = 4
    REPLICATED = 5


class Reason(IntEnum):
    """Why two slots are a pair."""

    SAME_SLOT = 0  # same module, same slot name, same code
    SAME_QUANTITY = 1  # the vocabulary says that both hold the same tensor
    FUSED_PARTS = 2  # the parts, laid side by side, are the fused tensor
    RESIDUAL_STREAM = 3  # the sum exists on the other side only inside the next norm
    ELSEWHERE = 4  # the same tensor, seen in another module
    SAME_NAME = 5  # same module path and slot name, code not known to be the same
    MAPPING = 6  # a rule of the mapping file says so


class Block(NamedTuple):
    """Pairs that one rule found, as columns, in no order yet."""

    node: Int32
    group: UInt8
    relation: UInt8
    reason: UInt8
    elsewhere: UInt8
    quantity: Int32
    left: Lists
    right: Lists
