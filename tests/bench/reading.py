"""`python -m tests.bench.reading`: what reading a pair of 200 000 nodes a side costs, from plain files and from zip archives.

An archive may cost as much as its files and their inflation, which is measured beside it.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.bench.cost import FILES, HEADING, Bound, Cost, apart, in_turns, json_loads, row
from tests.bench.large_dump import Extent, write_large_dump

MICRO_BATCHES = 20
BOUND = Bound(ratio=1.2, peak=250)
READ = """
import sys
from pathlib import Path
from compare.engine.ingest import paths_to_sources, read_side
for side in sys.argv[1:]:
    read_side(paths_to_sources([Path(side)]), side)
"""
INFLATE = """
import sys, zipfile
for side in sys.argv[1:]:
    with zipfile.ZipFile(side) as archive:
        for name in archive.namelist():
            with archive.open(name) as member:
                while member.read(1 << 20):
                    pass
"""


def _zipped(side: Path) -> Path:
    archive = side.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        for name in FILES:
            file.write(side / name, name)
    return archive


def _ended_well(command: Sequence[str], cost: Cost) -> None:
    if cost.status != 0:
        raise SystemExit(f"status {cost.status} of {' '.join(command[-2:])}")


def main(rounds: int = 3) -> int:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        sides = [Path(folder) / "left", Path(folder) / "right"]
        nodes = apart(write_large_dump, sides[0], Extent(micro_batches=MICRO_BATCHES))
        apart(write_large_dump, sides[1], Extent(micro_batches=MICRO_BATCHES, drift_from=40))
        archives = [_zipped(side) for side in sides]
        read = [sys.executable, "-c", READ]
        commands = [
            json_loads(sides),
            [*read, *map(str, sides)],
            [sys.executable, "-c", INFLATE, *map(str, archives)],
            [*read, *map(str, archives)],
        ]
        floor, plain, inflate, archived = in_turns(commands, rounds, _ended_well)
    with_inflate = Cost(floor.cpu + inflate.cpu, floor.peak, 0)
    sys.stdout.write(HEADING)
    sys.stdout.write(row(nodes, floor, plain, "reading two sides"))
    sys.stdout.write(row(nodes, with_inflate, archived, f"reading two zip archives (inflation alone: {inflate.cpu:.2f} s)"))
    exceeded = BOUND.exceeded("reading", floor, plain) + BOUND.exceeded("reading archives", with_inflate, archived)
    sys.stdout.writelines(f"EXCEEDED: {line}\n" for line in exceeded)
    return 1 if exceeded else 0


if __name__ == "__main__":
    raise SystemExit(main())
