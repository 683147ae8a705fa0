"""How much a stranger's tensor file may ask of this machine. Honest files stay far below every one of these."""

from __future__ import annotations

BLOCK = 1 << 18
"""Bytes read, hashed or unpacked at a time."""

IN_MEMORY = 8 << 20
"""A stream or a packed record up to this many bytes is held in memory, a longer one in a temporary file."""

LARGEST_UNPACKED = 64 << 30
"""Bytes that a stream or a packed record may have: what may be asked of the disk for temporary files."""

LARGEST_PROGRAM = 1 << 16
"""Bytes of a data.pkl. One tensor's has about 200."""

LARGEST_DIRECTORY = 1 << 20
"""Bytes of the directory of a .pt file, which zipfile holds in memory. One tensor's has about 700."""

MOST_RECORDS = 1024
"""Records of a .pt file. One tensor's has seven."""

LONGEST_HEADER = 10_000
"""Characters of a .npy header, as in numpy. A plain array's has 118."""

MOST_DIMENSIONS = 64
"""As in numpy."""

MOST_REPEATED = 1 << 27
"""Elements of a view that reads its storage's elements more than once (``expand``): the file's size does not bound its work."""

RELEASE = 32 << 20
"""Bytes streamed from a mapped file before its pages are given back."""

KEPT_OPEN = 64 << 20
MOST_OPEN = 512
"""Bytes and number of the tensors of a run that are kept open because another pair may look at them again."""
