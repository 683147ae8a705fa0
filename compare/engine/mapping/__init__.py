"""The mapping file: which module of one side stands beside which of the other, as a person reads and edits it.

``rules`` are the words, ``read`` turns YAML or CSV into rules (its own form, and msprobe's layer, cell and data mappings), ``write`` turns
the mapping that was used into text. What rules do to a comparison: ``compare.engine.align.rules``. The form: docs/mapping.md.
"""
