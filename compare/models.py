"""What the database remembers: uploads, runs, comparisons, their parts, loops and exports, links, and tokens. Heavy results are files,
never one row a node.

Runs, comparisons, parts, loops and exports are tasks: rows that wait for a worker. A row is the truth about its task and the broker is only
a bell, so every change of state is a compare-and-set (``services/work.py``), and a bell that was lost is rung again
(``services/recovery.py``).
"""

from __future__ import annotations

import json
import secrets
from typing import Any, ClassVar

from django.db import models


def new_slug() -> str:
    """22 URL-safe characters with 128 random bits: knowing the address is the permission, so it must not be guessable."""
    return secrets.token_urlsafe(16)


class ReadableJSON(json.JSONEncoder):
    """JSON with Chinese left as it is, so that a text search in SQLite finds it (the default would store backslash escapes)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "ensure_ascii": False})


class Blob(models.Model):
    """One content, stored once whatever it is called and however often it arrives: the file ``blobs/<2>/<sha256>``."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size = models.BigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256


class Task(models.Model):
    """What waits for a worker: a state, and who is working on it.

    ``attempt`` counts the claims; a worker writes only while the row still carries the number of its own claim, so one that was given up
    for dead and wakes up again changes nothing. ``rung_at`` is when a message for the row was last sent, None = not yet.
    """

    QUEUED = "queued"
    FAILED = "failed"
    WORKING: ClassVar[str]  # the state of a claimed row

    progress = models.JSONField(default=dict, blank=True)
    error = models.JSONField(null=True, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    task_id = models.CharField(max_length=64, blank=True)
    rung_at = models.DateTimeField(null=True, blank=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    state = models.CharField(max_length=12)  # each task has its own choices

    class Meta:
        abstract = True


class Job(Task):
    """What runs and comparisons share: a task with a name and an address."""

    id = models.CharField(max_length=32, primary_key=True, default=new_slug, editable=False)
    name = models.CharField(max_length=200)
    tags = models.JSONField(default=list, blank=True, encoder=ReadableJSON)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class Run(Job):
    """One upload: a whole tree of dumps, immutable once read."""

    class State(models.TextChoices):
        QUEUED = "queued"
        PARSING = "parsing"
        READY = "ready"
        FAILED = "failed"

    class Role(models.TextChoices):
        TRAIN = "train"
        INFER = "infer"
        AUTO = "auto"  # as the dump itself says, see inventory["role"]

    WORKING = State.PARSING

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    role = models.CharField(max_length=8, choices=Role.choices, default=Role.AUTO)
    inventory = models.JSONField(null=True, blank=True)
    size = models.BigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)  # of the one file; of several, of their names and sums

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (models.Index(fields=["state", "heartbeat_at"]), models.Index(fields=["-created_at", "-id"]))


class RunFile(models.Model):
    """One file of a run under the name its sender gave it (hostile text: never part of a path on this machine)."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="files")
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="run_files")
    name = models.CharField(max_length=1024)
    order = models.PositiveIntegerField()

    class Meta:
        ordering = ("order",)

    def __str__(self) -> str:
        return self.name


class Upload(models.Model):
    """A file on its way in (tus 1.0). How far it is says the size of ``uploads/<id>.part``, which survives a killed server; no column does.

    ``sha256`` and ``blob`` are set when all bytes are there; ``run`` when a run took it, so that a repeated request finds the same run.
    ``declared_sha256`` is what its sender says that the bytes will sum to, "" = nothing; other bytes are not kept.
    """

    id = models.CharField(max_length=32, primary_key=True, default=new_slug, editable=False)
    name = models.CharField(max_length=1024)
    length = models.BigIntegerField()
    sha256 = models.CharField(max_length=64, blank=True)
    declared_sha256 = models.CharField(max_length=64, blank=True, default="")
    blob = models.ForeignKey(Blob, null=True, blank=True, on_delete=models.PROTECT, related_name="uploads")
    run = models.ForeignKey(Run, null=True, blank=True, on_delete=models.CASCADE, related_name="uploads")
    expires_at = models.DateTimeField(db_index=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def with_sides(self) -> ComparisonQuerySet:
        """With both runs and what became of their key data, but not their inventories: those are documents of many kilobytes that few
        readers look at.
        """
        return self.select_related("left", "right", "loop").defer("left__inventory", "right__inventory")


class Comparison(Job):
    """A left run against a right run, with options. It waits, queued, until its runs are ready.

    One of several parts is spread: while it runs, its ``phase`` says whether its parts are being compared (then no worker holds this row,
    they hold its parts), whether it waits to be reduced to a verdict, or is being reduced.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"  # its worker died; a retry is offered

    class Phase(models.TextChoices):
        WHOLE = ""  # one worker does it all, or has not said yet that there are several parts
        PARTS = "parts"
        REDUCE = "reduce"
        REDUCING = "reducing"

    WORKING = State.RUNNING
    RETRYABLE = frozenset({State.FAILED, State.CANCELLED, State.INTERRUPTED})

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    left = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="as_left")
    right = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="as_right")
    options = models.JSONField(default=dict, blank=True)
    phase = models.CharField(max_length=8, choices=Phase.choices, default=Phase.WHOLE, blank=True)
    tries = models.PositiveIntegerField(default=0)  # claims for its reduction since somebody asked for the comparison
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    opened_at = models.DateTimeField(null=True, blank=True)  # when somebody last looked at it, to the hour
    example = models.CharField(max_length=32, blank=True)  # which shipped example it is, "" = none
    # The comparison of the same runs that this one was begun from, with other rules of mapping.
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="further")

    # What a list shows, copied from the verdict document as soon as that is known; the document itself is a file.
    verdict = models.CharField(max_length=20, blank=True)
    headline_en = models.TextField(blank=True)
    headline_zh = models.TextField(blank=True)
    first_module = models.CharField(max_length=500, blank=True)

    objects = ComparisonQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (models.Index(fields=["state", "heartbeat_at"]), models.Index(fields=["-created_at", "-id"]))


class Piece(Task):
    """What a spread comparison is made of, claimed, done and published by a worker of its own. ``worker`` names the process that claimed it
    last; ``tries`` are the claims since somebody asked for the comparison: a piece may be what kills its workers.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"
        CANCELLED = "cancelled"

    WORKING = State.RUNNING
    UNFINISHED = frozenset({State.QUEUED, State.RUNNING})
    RETRYABLE = frozenset({State.FAILED, State.CANCELLED})

    comparison: Comparison

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    worker = models.CharField(max_length=200, blank=True)
    tries = models.PositiveIntegerField(default=0)

    class Meta:
        abstract = True


class Part(Piece):
    """One (stage, step) of a comparison; ``n`` is its folder ``parts/<n>/``. What only one side holds has a row, done, and no folder.

    The parts of a spread comparison are rows from the moment they are known; the one part of a comparison that is not spread gets its row
    when it is done.
    """

    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, related_name="parts")
    n = models.PositiveIntegerField()
    stage = models.CharField(max_length=200, null=True)  # noqa: DJ001 - null is the contract's word for "no stage", "" could be a stage
    step = models.IntegerField(null=True)
    verdict = models.CharField(max_length=20, blank=True)  # "" = none yet

    class Meta:
        ordering = ("n",)
        constraints = (models.UniqueConstraint(fields=["comparison", "n"], name="one_part_a_number"),)
        indexes = (models.Index(fields=["comparison", "state"]), models.Index(fields=["state", "heartbeat_at"]))

    def __str__(self) -> str:
        return f"part {self.n}: {self.verdict or self.state}"


class Loop(Piece):
    """Key data and configurations of a spread comparison of RL runs, in the folder ``key_data/``: no part waits for them, nor they for one.

    There is none where neither run holds any, nor of a comparison that is not spread.
    """

    comparison = models.OneToOneField(Comparison, on_delete=models.CASCADE, related_name="loop")

    class Meta:
        indexes = (models.Index(fields=["state", "heartbeat_at"]),)

    def __str__(self) -> str:
        return f"loop: {self.state}"


class Export(Task):
    """A file that a worker makes of a finished comparison: ``exports/<name>``."""

    class State(models.TextChoices):
        QUEUED = "queued"
        MAKING = "making"
        READY = "ready"
        FAILED = "failed"

    WORKING = State.MAKING

    state = models.CharField(max_length=12, choices=State.choices, default=State.QUEUED)
    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, related_name="exports")
    name = models.CharField(max_length=40)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["comparison", "name"], name="one_export_a_name"),)
        indexes = (models.Index(fields=["state", "heartbeat_at"]),)

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class ShareLink(models.Model):
    """A read-only address of a comparison that ends by itself or is taken back."""

    id = models.CharField(max_length=32, primary_key=True, default=new_slug, editable=False)
    comparison = models.ForeignKey(Comparison, on_delete=models.CASCADE, related_name="share_links")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return self.id


class ApiToken(models.Model):
    """Lets a script on another machine send dumps. The token itself is shown once and not kept: ``sha256`` is its sum."""

    name = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")

    def __str__(self) -> str:
        return self.name
