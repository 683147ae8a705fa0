"""Uploads below HTTP: streams that break, servers that forget, files that are the same."""

from __future__ import annotations

import hashlib
import io
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compare.models import Blob, Upload
from compare.services import blobs, storage, uploads
from compare.services.refusals import Refusal
from tests.rooms import files_below


class Breaking:
    """A connection that brings some bytes and then ends, by an error or without a word."""

    def __init__(self, content: bytes, error: Exception | None) -> None:
        self.rest = io.BytesIO(content)
        self.error = error

    def read(self, size: int) -> bytes:
        block = self.rest.read(min(size, 7))
        if not block and self.error:
            raise self.error
        return block


@pytest.mark.parametrize("error", [None, ConnectionResetError(), OSError("request data read error")])
def test_a_connection_that_breaks_keeps_what_arrived(error):
    content = bytes(range(100))
    upload = uploads.create("dump.zip", 100)
    with pytest.raises(Refusal) as said:
        uploads.append(upload, 0, Breaking(content[:40], error), 100)
    assert (said.value.code, said.value.params) == ("upload_cut", {"received": 40, "expected": 100})
    assert uploads.offset(upload) == 40
    assert uploads.append(upload, 40, io.BytesIO(content[40:]), 60) == 100
    assert Upload.objects.get().sha256 == hashlib.sha256(content).hexdigest()


@given(content=st.binary(max_size=300), cuts=st.lists(st.integers(0, 300), max_size=6), restarts=st.sets(st.integers(0, 6)))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_however_the_bytes_are_cut_and_whenever_the_server_restarts_the_sum_is_right(content, cuts, restarts):
    upload = uploads.create("dump.zip", len(content))
    edges = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    for n, (begin, end) in enumerate(pairwise(edges)):
        if n in restarts:
            uploads._sums = uploads.RunningSums()  # what a restart forgets
        uploads.append(Upload.objects.get(pk=upload.pk), begin, io.BytesIO(content[begin:end]), end - begin)
    sealed = Upload.objects.get(pk=upload.pk)
    assert sealed.sha256 == hashlib.sha256(content).hexdigest()
    assert storage.blob(sealed.sha256).read_bytes() == content


def test_bytes_that_reached_the_disk_but_not_the_sum_are_read_again():
    """A server that is killed in the middle of a request has written more than its memory ever said."""
    upload = uploads.create("dump.zip", 6)
    uploads.append(upload, 0, io.BytesIO(b"ab"), 2)
    with storage.part(upload.pk).open("ab") as part:
        part.write(b"cd")
    uploads.append(upload, 4, io.BytesIO(b"ef"), 2)
    assert Upload.objects.get().sha256 == hashlib.sha256(b"abcdef").hexdigest()


def test_the_memory_of_half_taken_sums_is_bounded():
    sums = uploads.RunningSums(capacity=2)
    for name in "abc":
        sums.put(name, 1, hashlib.sha256(b"x"))
    assert sums.take("a", 1) is None
    assert sums.take("c", 2) is None
    assert sums.take("b", 1).hexdigest() == hashlib.sha256(b"x").hexdigest()


@pytest.mark.parametrize("moved", [False, True])
def test_a_seal_that_was_cut_off_is_finished_later(moved):
    upload = uploads.create("dump.zip", 3)
    digest = hashlib.sha256(b"abc").hexdigest()
    part = storage.part(upload.pk)
    part.write_bytes(b"abc")
    Upload.objects.update(sha256=digest)
    if moved:
        storage.blob(digest).parent.mkdir(parents=True)
        part.rename(storage.blob(digest))
    upload = Upload.objects.get()
    assert uploads.offset(upload) == 3
    assert uploads.seal(upload).blob_id == digest
    assert storage.blob(digest).read_bytes() == b"abc"


def test_content_whose_file_was_lost_is_stored_again_by_the_next_upload(data_folder):
    first = uploads.create("a", 3)
    uploads.append(first, 0, io.BytesIO(b"abc"), 3)
    storage.blob(first.sha256).unlink()
    second = uploads.create("b", 3)
    uploads.append(second, 0, io.BytesIO(b"abc"), 3)
    assert storage.blob(second.sha256).read_bytes() == b"abc"
    assert Blob.objects.count() == 1


def test_releasing_content_that_is_still_used_does_nothing(data_folder):
    upload = uploads.create("a", 3)
    uploads.append(upload, 0, io.BytesIO(b"abc"), 3)
    blobs.release([upload.sha256, "0" * 64])
    assert len(files_below(data_folder)) == 1
