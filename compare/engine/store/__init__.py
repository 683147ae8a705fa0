"""Columns on disk and on the wire. Knows tables and bytes, not what they mean: no alignment, no grades.

``columns`` writes and reads folders of columns with packed strings, ``dumps`` a Dump in such a folder, ``tree`` the tree for the
browser, ``reader`` answers for one node of a finished part. Everything carries FORMAT.
"""
