"""Numbers → verdict.

``case`` holds everything known about one pair of dumps. ``premises`` says what the numbers rest on, ``origins`` where the sides first part,
``layers`` the layers table, ``causes`` what may be behind an origin, ``findings`` what the reader should know besides, ``headline`` the
sentence, ``rollup`` what a parent shows of its children, and ``verdict`` puts the document together.
"""
