"""What readers may change of a run or comparison: what it is called."""

from __future__ import annotations

from typing import Any

from compare.models import Job


def change(job: Job, **fields: Any) -> None:
    """Set name, tags or role and nothing else: a worker may be writing the rest of the row."""
    for name, value in fields.items():
        setattr(job, name, value)
    job.save(update_fields=[*fields, "updated_at"])
