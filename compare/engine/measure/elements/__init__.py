"""Real tensors, element by element: what ``statistics`` is for the numbers in dump.json, this is for the tensor files.

``layout`` brings the two ends of a pair into one order of rows and columns, ``ends`` reads them block by block, ``metrics`` takes one pass
in the memory of a block, ``table`` does it for all pairs of a case and keeps the results as columns.
"""
