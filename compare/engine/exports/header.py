"""The columns of the pair table: msprobe's, in its order and with its names, then ours."""

from __future__ import annotations

from dataclasses import dataclass

from compare.engine.exports.tensor_columns import DATA_NAME, TENSORS

BASIC = (
    "NPU Name",
    "Bench Name",
    "NPU Dtype",
    "Bench Dtype",
    "NPU Tensor Shape",
    "Bench Tensor Shape",
    "NPU Requires_grad",
    "Bench Requires_grad",
)
DIFFERENCES = (
    "Max diff",
    "Min diff",
    "Mean diff",
    "L2norm diff",
    "MaxRelativeErr",
    "MinRelativeErr",
    "MeanRelativeErr",
    "NormRelativeErr",
)
STATISTICS = ("NPU max", "NPU min", "NPU mean", "NPU l2norm", "Bench max", "Bench min", "Bench mean", "Bench l2norm")
CHECKSUMS = ("NPU MD5", "BENCH MD5")
TAIL = ("Requires_grad Consistent", "Result", "Err_message")
OURS = (
    "Module",
    "Direction",
    "Group",
    "Layer",
    "Relation",
    "Reason",
    "Confidence",
    "Grade",
    "Role",
    "Difference",
    "Floor",
    "Order",
    "Explanation",
    "Part",
    "Stage",
    "Step",
    "Rank",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which of msprobe's columns there are: checksums where both sides wrote them, statistics where any were written; where tensors were
    compared, the figures of their elements stand in place of the differences of statistics.
    """

    checksums: bool
    statistics: bool
    tensors: bool

    @property
    def header(self) -> tuple[str, ...]:
        apart = TENSORS if self.tensors else DIFFERENCES
        measured = (*(CHECKSUMS if self.checksums else ()), *((*apart, *STATISTICS) if self.statistics else ()))
        return (*BASIC, *measured, *TAIL, *((DATA_NAME,) if self.tensors else ()), *OURS)
