"""How much a stranger's file may ask of this machine. Honest dumps stay far below every one of these."""

from __future__ import annotations

BLOCK = 1 << 18
"""Bytes read at a time: the unit of memory and of progress. Larger blocks fall out of the processor's cache and are slower."""

DEEPEST_NESTING = 400
"""Levels of lists and objects, as deep as the dumper itself goes; Python's parser gives up near 1,000."""

LARGEST_ENTRY = 64 << 20
"""Bytes of one record (or one stack with all the records that share it)."""

MOST_RECORDS = 5_000_000
"""Records of one dump.json."""

MOST_MEMBERS = 1_000_000
"""Files in all archives of one input."""

MOST_NESTED = 10_000
"""Archives inside one archive, each of which is copied to a temporary file."""

LARGEST_DIRECTORY = 256 << 20
"""Bytes of a zip's central directory, which zipfile holds in memory."""

LARGEST_HEADER = 1 << 20
"""Bytes that one tar header may make us read at once."""

LARGEST_JSON = 64 << 30
"""Bytes of json, databases and archives inside archives in one input, unpacked."""

LARGEST_KEPT = 1 << 40
"""Bytes of tensor files that are copied out of tar.gz and nested archives of one input."""

LARGEST_DATABASE = 16 << 30
"""Bytes of a graph_visualize database, which is copied before it is opened."""

BOMB_FROM = 64 << 20
BOMB_RATIO = 400
"""A member larger than BOMB_FROM that shrank more than this was made to hurt: json of statistics shrinks 5 to 40 times."""
