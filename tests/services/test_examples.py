"""The shipped examples."""

from __future__ import annotations

import hashlib

from django.core.management import call_command

from compare.models import Comparison, Run
from compare.services import examples, storage


def test_examples_are_loaded_once_however_often_the_server_starts(capsys):
    call_command("load_example")
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(examples.EXAMPLES)
    assert set(examples.loaded()) == set(examples.EXAMPLES)
    call_command("load_example")
    assert Comparison.objects.count() == len(examples.EXAMPLES)


def test_an_example_goes_through_the_same_upload_as_every_dump():
    examples.load()
    for comparison in Comparison.objects.all():
        example = examples.EXAMPLES[comparison.example]
        for run, name in ((comparison.left, example.train), (comparison.right, example.infer)):
            content = (examples.FOLDER / name).read_bytes()
            assert (run.name, run.sha256, run.size) == (name, hashlib.sha256(content).hexdigest(), len(content))
            assert storage.blob(run.sha256).read_bytes() == content
            assert run.state == Run.State.QUEUED


def test_an_example_that_was_deleted_comes_back_at_the_next_start():
    first = examples.load()[0]
    first.delete()
    assert [comparison.example for comparison in examples.load()] == [first.example]
