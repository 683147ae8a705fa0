"""Which dumps of one run are compared with which of the other: parts, each a stage and step of both sides, and the ranks within them.

``pairing`` holds the words; ``forming`` pairs by requests, stages, processes and steps; ``by_tokens`` by what the dumps were fed, where
the numbers of steps are refuted (``tokens`` is the fingerprint of a pass, ``same_tokens`` compares two).
"""
