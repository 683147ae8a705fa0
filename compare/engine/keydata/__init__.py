"""The room for key-data tables of RL runs (``data/<key>/step/rank`` and ``configurations.json``), which stand beside module dumps. Empty
so far.
"""
