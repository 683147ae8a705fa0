"""The engine: two dumps → columns → a verdict. Pure Python over numpy; no Django, no Celery, no database, no clock but for timing.

``model`` and ``errors`` are the words; ``ingest`` reads, ``align`` pairs, ``measure`` compares, ``diagnose`` says where and why,
``store`` keeps. ``runs`` opens a run, ``parts`` and ``options`` say what is compared with what, ``plan`` is that for two runs, ``judging``
one part of it; ``publish`` writes what the server sends, ``pipeline`` is the face of it all.
"""
