"""Commands of ``manage.py``: the product's own ``compare``, and housekeeping."""
