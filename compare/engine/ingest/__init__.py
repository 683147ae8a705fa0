"""Bytes → columns: archives, folder layouts and the files of a dump, read once and streamed into a ``Side``."""

from __future__ import annotations

from compare.engine.ingest.inventory import inventory
from compare.engine.ingest.kept import KEPT_FILE
from compare.engine.ingest.side import read_side
from compare.engine.ingest.source import Progress, Source, paths_to_sources

__all__ = ["KEPT_FILE", "Progress", "Source", "inventory", "paths_to_sources", "read_side"]
