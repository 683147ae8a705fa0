"""Pairs → numbers → grades: arithmetic over whole columns.

``statistics`` combines the stored statistics of each side of a pair and takes their differences, ``ulp`` knows how finely a statistic was
stored, ``noise`` what honest difference to expect, ``grades`` puts the two together. The policy for NaN, Inf, null and zero is in
``statistics`` and nowhere else.
"""
