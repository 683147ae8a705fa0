"""One run of a model as the dumps of several ranks: tensors cut the way tensor parallelism cuts them, layers dealt out to pipeline stages.

A model runs once, whole, and records into a `Ranks`; each rank's recorder gets its share. What a rank holds of a tensor follows from the
module: heads of q, k, v, columns of gate and up, rows of what a row-parallel linear takes in. Key and value heads are held by several
ranks where there are fewer of them than ranks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.simulator.families import Size
from tests.simulator.precision import Array
from tests.simulator.recorder import Call, Recorder

Cut = Callable[[Array, int], Array]
LAYER = re.compile(r"((?:decoder|model)\.layers\.)(\d+)")


@dataclass(frozen=True)
class Layout:
    """`tensor` ranks a stage, `stages` of the pipeline, `chunks` of layers a stage (interleaved); `sequence` cuts norms' tensors along
    tokens; `local` numbers the layers of a stage from 0."""

    tensor: int = 1
    stages: int = 1
    chunks: int = 1
    sequence: bool = False
    local: bool = False

    @property
    def ranks(self) -> int:
        return self.tensor * self.stages


class _Cuts:
    """How each rank of `tensor` cuts an array."""

    def __init__(self, tensor: int, size: Size) -> None:
        self.tensor, self.size = tensor, size

    def whole(self, values: Array, rank: int) -> Array:
        return values

    def along(self, axis: int) -> Cut:
        return lambda values, rank: np.ascontiguousarray(np.array_split(values, self.tensor, axis=axis)[rank])

    def halves(self, axis: int) -> Cut:
        """Of gate beside up: each cut for itself."""

        def cut(values: Array, rank: int) -> Array:
            parts = np.split(values, 2, axis=axis)
            return np.concatenate([np.array_split(part, self.tensor, axis=axis)[rank] for part in parts], axis=axis)

        return cut

    def heads(self, axis: int, count: int) -> Cut:
        """Whole heads; one that several ranks need is held by each of them."""

        def cut(values: Array, rank: int) -> Array:
            width = values.shape[axis] // count
            held = max(count // self.tensor, 1)
            first = rank * count // self.tensor
            return np.ascontiguousarray(np.take(values, range(first * width, (first + held) * width), axis=axis))

        return cut

    def fused(self, axis: int) -> Cut:
        """Of q beside k beside v."""
        size = self.size

        def cut(values: Array, rank: int) -> Array:
            q, k, v = np.split(values, [size.q_width, size.q_width + size.kv_width], axis=axis)
            return np.concatenate(
                [self.heads(axis, size.heads)(q, rank), *(self.heads(axis, size.kv_heads)(part, rank) for part in (k, v))], axis=axis
            )

        return cut


class Ranks(Recorder):
    """Records into one recorder a rank. `make` builds them."""

    def __init__(self, layout: Layout, size: Size, make: Callable[[], Recorder], watching: Recorder) -> None:
        self.__dict__.update(watching.__dict__)  # what is watched is seen whole
        self.layout, self.size = layout, size
        self.ranks = [make() for _ in range(layout.ranks)]
        self.watching = watching
        cuts = _Cuts(layout.tensor, size)
        whole, last, kv = cuts.whole, cuts.along(-1), cuts.heads(-1, size.kv_heads)
        sequence = cuts.along(0) if layout.sequence else whole
        # module → (cuts of its inputs, of its outputs, of its parameters)
        self.rules: dict[str, tuple[list[Cut], list[Cut], Cut]] = {
            "qkv_proj": ([whole], [cuts.fused(-1)], cuts.fused(0)),
            "linear_qkv": ([sequence], [cuts.fused(-1)], cuts.fused(0)),
            "q_norm": ([cuts.along(1)], [cuts.along(1)], whole),
            "k_norm": ([cuts.heads(1, size.kv_heads)], [cuts.heads(1, size.kv_heads)], whole),
            "q_layernorm": ([cuts.along(2)], [cuts.along(2)], whole),
            "k_layernorm": ([cuts.heads(2, size.kv_heads)], [cuts.heads(2, size.kv_heads)], whole),
            "rotary_emb": ([whole, last, kv], [last, kv], whole),
            "attn": ([last, kv, kv], [last], whole),
            "core_attention": ([cuts.along(2), cuts.heads(2, size.kv_heads), cuts.heads(2, size.kv_heads)], [last], whole),
            "o_proj": ([last], [whole], cuts.along(1)),
            "linear_proj": ([last], [sequence], cuts.along(1)),
            "gate_up_proj": ([whole], [cuts.halves(-1)], cuts.halves(0)),
            "linear_fc1": ([sequence], [cuts.halves(-1)], cuts.halves(0)),
            "act_fn": ([cuts.halves(-1)], [last], whole),
            "down_proj": ([last], [whole], cuts.along(1)),
            "linear_fc2": ([last], [sequence], cuts.along(1)),
            "embed_tokens": ([whole], [whole], cuts.along(0)),
            "word_embeddings": ([whole], [whole], cuts.along(0)),
            "output_layer": ([sequence], [last], cuts.along(0)),
            "input_layernorm": ([sequence, sequence], [sequence, sequence], whole),
            "pre_mlp_layernorm": ([sequence], [sequence], whole),
            "final_layernorm": ([sequence], [sequence], whole),
            "": ([whole], [whole], whole),
        }
        self.stream = sequence
        self.layer = 0

    def _rule(self, path: str, side: int) -> list[Cut]:
        leaf = path.rpartition(".")[2]
        if leaf.isdecimal() or leaf in ("self_attention", "mlp", "embedding", "decoder"):
            return [self.stream]
        return self.rules.get(leaf, self.rules[""])[side]

    @contextmanager
    def module(
        self, path: str, kind: str, args: list[Any], kwargs: dict[str, Any] | None = None, parameters: dict[str, Array] | None = None
    ) -> Iterator[Call]:
        stage, chunk, name = self._place(path)
        inside = range(self.layout.ranks) if stage is None else range(stage * self.layout.tensor, (stage + 1) * self.layout.tensor)
        weight_cut = self.rules.get(path.rpartition(".")[2], self.rules[""])[2]
        into = self._rule(path, 0)
        with ExitStack() as stack:
            watched = stack.enter_context(self.watching.module(path, kind, args, kwargs, parameters))
            calls = []
            # What is around all layers is on every stage and puts out something else on each: left out.
            for rank in () if path in ("model", "decoder") and self.layout.stages > 1 else inside:
                part = rank % self.layout.tensor
                mine = [self._cut(value, into[min(at, len(into) - 1)], part) for at, value in enumerate(args)]
                keys = {key: self._cut(value, into[0], part) for key, value in (kwargs or {}).items()}
                kept = {key: weight_cut(value, part) for key, value in (parameters or {}).items()}
                prefix = f"{chunk}." if self.layout.chunks > 1 else ""
                calls.append((part, stack.enter_context(self.ranks[rank].module(prefix + name, kind, mine, keys, kept))))
            yield watched
            out = self._rule(path, 1)
            for part, call in calls:
                call.output = [self._cut(value, out[min(at, len(out) - 1)], part) for at, value in enumerate(watched.output)]

    def _cut(self, value: Any, cut: Cut, rank: int) -> Any:
        if isinstance(value, list):  # what each rank has of its own: a sum that is not added up yet
            return value[rank]
        return cut(value, rank) if isinstance(value, np.ndarray) and not np.issubdtype(value.dtype, np.integer) else value

    def _place(self, path: str) -> tuple[int | None, int, str]:
        """(stage, chunk, path within the stage); no stage: on all."""
        found = LAYER.search(path)
        layout = self.layout
        if path.endswith("rotary_emb") and layout.stages > 1:  # shared by the layers of a stage, and named after the first of them
            each = self.size.layers // layout.stages
            stage = self.layer // each
            return stage, 0, LAYER.sub(rf"\g<1>{stage * each}", path)
        if found is None:
            last = layout.chunks - 1
            if any(end in path for end in ("final_layernorm", "output_layer", "model.norm", "logits_processor")):
                return layout.stages - 1, last, path
            return (0, 0, path) if layout.stages > 1 else (None, 0, path)
        self.layer = int(found.group(2))
        layer, each = self.layer, self.size.layers // (layout.stages * layout.chunks)
        block = layer // each
        local = LAYER.sub(rf"\g<1>{layer % each}", path) if layout.local else path
        return (block % layout.stages if layout.stages > 1 else None), block // layout.stages, local
