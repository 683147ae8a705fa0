"""The reader against torch: what torch.save wrote is what torch.load gave."""

from __future__ import annotations

import json
import mmap
import zipfile
from pathlib import Path

import numpy as np
import pytest

from compare.engine.errors import DumpError
from compare.engine.tensors import open_tensor, statistics

ARCHIVE = Path(__file__).parents[2] / "data" / "tensors" / "torch-2.13.zip"
with zipfile.ZipFile(ARCHIVE) as opened:
    FILES = {member.removesuffix(".pt"): opened.read(member) for member in opened.namelist() if member.endswith(".pt")}
    EXPECTED = json.loads(opened.read("expected.json"))
READABLE = sorted(name for name in FILES if name.partition(".")[0] in EXPECTED)

REFUSED = {
    "refused.quantised": "tensor_quantised",
    "refused.quantised_channels": "tensor_quantised",
    "refused.sparse": "tensor_sparse",
    "refused.csr": "tensor_sparse",
    "refused.nested": "tensor_sparse",
    "refused.meta": "tensor_no_data",
    "refused.dict": "tensor_content",
    "refused.list": "tensor_content",
    "refused.tuple": "tensor_content",
    "refused.number": "tensor_content",
    "refused.text": "tensor_content",
    "refused.none": "tensor_content",
    "refused.dtype": "tensor_content",
    "refused.state_dict": "tensor_content",
    "refused.module": "tensor_name",
    "refused.float4": "tensor_dtype",
    "refused.legacy": "tensor_legacy",
    "refused.script": "tensor_script",
    "skipped": "tensor_checksum",  # torch leaves its data out and says so nowhere else
}


def number(value):
    return complex(*value) if isinstance(value, list) else float(value) if isinstance(value, str) else value


def expected_values(name: str, kind: str) -> np.ndarray:
    values = [number(value) for value in EXPECTED[name.partition(".")[0]]["values"]]
    return np.array(values, dtype={"i": np.int64, "u": np.uint64, "b": bool, "c": complex}.get(kind, float))


def test_every_file_of_the_archive_is_either_expected_or_refused():
    assert {name for name in FILES if name not in READABLE} == set(REFUSED)


@pytest.mark.parametrize("name", READABLE)
def test_what_torch_saved_is_read_as_torch_reads_it(name, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(FILES[name])
    expected = EXPECTED[name.partition(".")[0]]
    with zipfile.ZipFile(ARCHIVE) as archive, archive.open(f"{name}.pt") as stream:
        from_archive = open_tensor(stream, name)
    for tensor in (open_tensor(path, name), from_archive):
        description, array = tensor.description, tensor.array()
        assert description.dtype == expected["dtype"]
        assert [list(description.shape), list(description.stride), description.offset] == [
            expected[k] for k in ("shape", "stride", "offset")
        ]
        assert array.shape == description.shape
        assert array.dtype == description.element.value
        assert not array.flags.writeable
        values = expected_values(name, array.dtype.kind)
        np.testing.assert_array_equal(array.reshape(-1).astype(values.dtype), values)
        chunks = list(tensor.chunks(7))
        assert [chunk.size for chunk in chunks] == [7] * (values.size // 7) + [values.size % 7] * (values.size % 7 > 0)
        if chunks:
            np.testing.assert_array_equal(np.concatenate(chunks), values.astype(chunks[0].dtype))
            assert {chunk.dtype for chunk in chunks} == {np.dtype(np.complex128 if values.dtype.kind == "c" else np.float64)}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_no_plain_tensor_is_refused_by_what_it_is(name, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(FILES[name])
    with pytest.raises(DumpError) as refused:
        open_tensor(path, "step0/a.pt")
    assert refused.value.code == REFUSED[name]
    assert refused.value.where == "step0/a.pt"


def test_a_file_on_disk_is_mapped_and_not_copied(tmp_path):
    for name in ("float32", "bfloat16", "float8_e5m2", "transposed_bf16", "expanded"):
        path = tmp_path / f"{name}.pt"
        path.write_bytes(FILES[name])
        owner = open_tensor(path, name).array()
        while isinstance(owner, np.ndarray):
            owner = owner.base
        assert isinstance(owner, memoryview)
        assert isinstance(owner.obj, mmap.mmap)


def test_an_array_outlives_its_tensor_file(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(FILES["float32"])
    array = open_tensor(path, "a").array()
    path.unlink()
    assert array.sum() == sum(EXPECTED["float32"]["values"])


def test_special_bfloat16_numbers_reach_the_statistics(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(FILES["specials_bf16"])
    assert all(np.isnan(statistics(open_tensor(path, "a"))))


def test_statistics_of_complex_numbers_are_those_of_their_absolute_values(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(FILES["complex128"])
    absolute = [abs(number(value)) for value in EXPECTED["complex128"]["values"]]
    found = statistics(open_tensor(path, "a"))
    assert found == pytest.approx((max(absolute), min(absolute), sum(absolute) / 24, sum(a * a for a in absolute) ** 0.5), rel=1e-14)
