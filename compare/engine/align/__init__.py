"""Dump × Dump → pairs.

Sees names, structure, shapes and dtypes, never the numbers. ``canonical`` takes wrappers out of names, ``conventions`` reads the vocabulary
files, ``nodes`` says which records stand beside each other, ``sequence`` aligns API calls inside a module, ``pairs`` says which slots hold
the same numbers and why, ``explain`` says why a record has no partner.
"""
