"""`python -m tests.bench.tensors`: what comparing two tensors costs beside reading both files and one numpy pass, and the peak of a large
pair.

The floor reads both files whole and takes one pass in float64 (difference, largest, two Norms), as a script would. CPU seconds are those of
the work alone, without the start of Python; files are in the page cache for both. The large pair is a sparse file of 2.2 GB a side that
`manage.py compare` reads with everything that a tensor dump has.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from tests.bench.cost import ROOT, apart, cost_of
from tests.engine.tensors import writer

SPEED_LIMIT, PEAK_LIMIT_MB = 0.5, 300.0
SHAPE = (8192, 3584)
LARGE = (300_000, 2048)  # float32: 2.4 GB
ROUNDS = 3
FLOOR = """
import sys, time, numpy as np, ml_dtypes
kind, offset, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
def read(path):
    data = np.fromfile(path, np.uint8)[offset:offset + {count} * np.dtype(kind).itemsize]
    return data.view(kind).astype(np.float64)
begin = time.process_time()
a, b = map(read, paths)
d = a - b
found = np.abs(d).max(), np.sqrt((d * d).sum() / (a * a).sum())
print(time.process_time() - begin)
"""
OURS = """
import sys, time
from pathlib import Path
from compare.engine.measure.elements.compare import compared
from compare.engine.measure.elements.layout import Side, best, layouts
from compare.engine.tensors import open_tensor
begin = time.process_time()
left, right = (Side([[open_tensor(Path(path), path)]]) for path in sys.argv[1:])
found = compared(best(layouts(left, right)))
print(time.process_time() - begin)
"""


def write_npy(path: Path, values: Any) -> int:
    with path.open("wb") as file:  # numpy would put .npy behind a name
        np.save(file, values)
    return path.stat().st_size - values.nbytes


def write_pt(path: Path, values: Any) -> int:
    """A .pt file of bfloat16 as torch.save writes it; returns where its numbers begin."""
    rows, columns = values.shape
    storage = writer.persistent("torch BFloat16Storage", "0", values.size)
    path.write_bytes(writer.pt(writer.program(writer.tensor(storage, (rows, columns), (columns, 1))), {"0": values.tobytes()}))
    return path.read_bytes()[: 1 << 16].index(values.tobytes()[:64])


CASES: dict[str, tuple[Any, Callable[[Path, Any], int]]] = {
    "float32 .npy": (np.float32, write_npy),
    "float16 .npy": (np.float16, write_npy),
    "bfloat16 .pt": (ml_dtypes.bfloat16, write_pt),
}


def write_pair(folder: Path, dtype: Any, write: Callable[[Path, Any], int]) -> tuple[int, list[str]]:
    """Two tensors that differ by what a bf16 rounding does, nearly everywhere."""
    random = np.random.default_rng(0)
    left = random.standard_normal(SHAPE, np.float32)
    paths, offset = [folder / "left", folder / "right"], 0
    for path, values in zip(paths, (left, left * (1 + 2**-9 * random.standard_normal(SHAPE, np.float32))), strict=True):
        offset = write(path, values.astype(dtype))
    return offset, [str(path) for path in paths]


def seconds(program: str, *arguments: str) -> float:
    """The least CPU of a few runs."""
    command = [sys.executable, "-c", program, *arguments]
    return min(float(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout) for _ in range(ROUNDS))


def write_large(folder: Path) -> None:
    """A dump of one module whose output is larger than the bound on memory: zeros on disk, but for a number here and there."""
    shape = list(LARGE)
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": shape, "Max": 1.0, "Min": 0.0, "Mean": 0.0, "Norm": 1.0}
    record = "Module.fc.Linear.forward.0"
    for side in ("left", "right"):
        place = folder / side / "step0" / "rank0"
        (place / "dump_tensor_data").mkdir(parents=True)
        named = {**leaf, "data_name": f"{record}.output.0.npy"}
        call = {"input_args": [], "input_kwargs": {}, "output": [named]}
        head = {"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": None}
        (place / "dump.json").write_text(json.dumps({**head, "data": {record: call}}), "utf-8")
        values = np.lib.format.open_memmap(place / "dump_tensor_data" / named["data_name"], "w+", np.float32, LARGE)
        values[::64, 7] = 1.0 if side == "left" else 1.5
        values.flush()


def main() -> int:
    exceeded = []
    sys.stdout.write(f"{'tensor pair':>14} {'read + pass CPU s':>18} {'compare CPU s':>14} {'speed':>6}\n")
    for name, (dtype, write) in CASES.items():
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            offset, paths = apart(write_pair, Path(folder), dtype, write)
            kind = "bfloat16" if dtype is ml_dtypes.bfloat16 else np.dtype(dtype).name
            floor = seconds(FLOOR.replace("{count}", str(SHAPE[0] * SHAPE[1])), kind, str(offset), *paths)
            ours = seconds(OURS, *paths)
        sys.stdout.write(f"{name:>14} {floor:18.2f} {ours:14.2f} {floor / ours:6.2f}\n")
        sys.stdout.flush()
        if floor / ours < SPEED_LIMIT:
            exceeded.append(f"{name}: {floor / ours:.2f} of the speed of reading and one pass, the bound is {SPEED_LIMIT}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        apart(write_large, Path(folder))
        verdict = Path(folder) / "verdict.json"
        sides = [str(Path(folder) / side) for side in ("left", "right")]
        cost = cost_of([sys.executable, "manage.py", "compare", *sides, "--json", str(verdict)])
        told = json.loads(verdict.read_text("utf-8"))
    size = 4 * LARGE[0] * LARGE[1] / 1e9
    sys.stdout.write(f"{size:.1f} GB a side: {cost.cpu:.1f} CPU s, peak {cost.peak:.0f} MB; {told['headline']['en']}\n")
    if cost.peak > PEAK_LIMIT_MB:
        exceeded.append(f"{size:.1f} GB a side: peak {cost.peak:.0f} MB, the bound is {PEAK_LIMIT_MB:.0f}")
    if "tensor" not in told["headline"]["en"]:
        exceeded.append("the large pair was not compared element by element")
    sys.stdout.writelines(f"EXCEEDED: {line}\n" for line in exceeded)
    return 1 if exceeded else 0


if __name__ == "__main__":
    raise SystemExit(main())
