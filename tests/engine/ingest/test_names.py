"""Record names in their parts, as the format writes them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compare.engine.ingest.names import parse, split_call
from compare.engine.ingest.records import RecordColumns
from compare.engine.model import Direction, RecordKind
from tests.engine.ingest.dumps import CALL_NAMES, GRADIENT_NAMES

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD
NAMES = {
    "Module.model.layers.0.mlp.down_proj.Linear.forward.0": (RecordKind.MODULE, FORWARD, 0, "model.layers.0.mlp.down_proj", "Linear"),
    "Module._fsdp_wrapped_module.Qwen2ForCausalLM.backward.3": (RecordKind.MODULE, BACKWARD, 3, "_fsdp_wrapped_module", "Qwen2ForCausalLM"),
    "Module.Qwen2ForCausalLM.forward.0": (RecordKind.MODULE, FORWARD, 0, "", "Qwen2ForCausalLM"),
    "Module.0.module.GPTModel.forward.12": (RecordKind.MODULE, FORWARD, 12, "0.module", "GPTModel"),
    "Cell.network.fc.Dense.forward.1": (RecordKind.MODULE, FORWARD, 1, "network.fc", "Dense"),
    "Module.a.forward.Linear.forward.0": (RecordKind.MODULE, FORWARD, 0, "a.forward", "Linear"),
    "Module.lm_head.Linear.parameters_grad.2": (RecordKind.PARAMETERS_GRAD, BACKWARD, 2, "lm_head", "Linear"),
    "Module.lm_head.Linear.parameters_grad": (RecordKind.PARAMETERS_GRAD, BACKWARD, 0, "lm_head", "Linear"),
    "Functional.linear.0.forward": (RecordKind.API, FORWARD, 0, "Functional.linear", None),
    "Tensor.__add__.17.backward": (RecordKind.API, BACKWARD, 17, "Tensor.__add__", None),
    "NPU.npu_fusion_attention.1.forward": (RecordKind.API, FORWARD, 1, "NPU.npu_fusion_attention", None),
    "my.package.op.v2.4.forward": (RecordKind.API, FORWARD, 4, "my.package.op.v2", None),
    "Torch.split.0.0.forward": (RecordKind.API, FORWARD, 0, "Torch.split.0", None),
    "optimizer": (RecordKind.OTHER, FORWARD, 0, "optimizer", None),
    "optimizer.3": (RecordKind.OTHER, FORWARD, 0, "optimizer.3", None),
    "Module.x.Linear.forward.9999999999": (RecordKind.OTHER, FORWARD, 0, "Module.x.Linear.forward.9999999999", None),
    "Module.x.Linear.forward.٣": (RecordKind.OTHER, FORWARD, 0, "Module.x.Linear.forward.٣", None),
    "Module.forward.0": (RecordKind.OTHER, FORWARD, 0, "Module.forward.0", None),
    "0.forward": (RecordKind.OTHER, FORWARD, 0, "0.forward", None),
    "linear.0.forward": (RecordKind.OTHER, FORWARD, 0, "linear.0.forward", None),
    "": (RecordKind.OTHER, FORWARD, 0, "", None),
}


@pytest.mark.parametrize(("name", "expected"), NAMES.items())
def test_a_name_says_kind_direction_call_path_and_class(name: str, expected: tuple[object, ...]) -> None:
    assert tuple(parse(name)) == expected


def test_the_call_number_is_taken_out_of_names_that_say_the_same_otherwise() -> None:
    assert split_call("Functional.linear.7.forward") == ("Functional.linear", "forward", 7)
    assert split_call("Module.a.Linear.forward.12") == ("Module.a.Linear.forward", "", 12)
    assert split_call("optimizer") == ("optimizer", "", -1)
    assert split_call("Module.a.Linear.forward.٣") == ("Module.a.Linear.forward.٣", "", -1)


@given(names=st.lists(CALL_NAMES | GRADIENT_NAMES | st.sampled_from(list(NAMES)), unique=True, max_size=30))
@example(names=["Functional.x.3.forward", "Functional.x.forward.3", "Functional.xforward.3", "Functional.x", "Module.a.M.parameters_grad"])
def test_rows_of_many_names_say_what_each_name_says_alone(names: list[str]) -> None:
    records = RecordColumns()
    for name in names:
        records.add(name)
    kind, direction, path, class_name = records.columns()
    paths, classes = list(records.paths), list(records.classes)
    for row, name in enumerate(names):
        found = (kind[row], direction[row], records.call[row], paths[path[row]], None if class_name[row] < 0 else classes[class_name[row]])
        assert found == tuple(parse(name))
