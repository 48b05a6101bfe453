"""Write a trained parser as three ONNX programs, which `service.parsers.text` runs.

They are built layer by layer from the weights: each matrix product is the integer one that training
rounds for (`trainer.parsing.quantization`), and nothing depends on the number of windows or words.
``com.microsoft`` are operators of ONNX Runtime beyond the standard.

Letters in shapes: ``B`` windows, ``L`` pieces, ``W`` words, ``D`` width of the encoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from syntax.parsing.folder import PIECES, RELATIONS, WORDS
from trainer.parsing.model import PLACES, TextParser, first_position
from trainer.parsing.quantization import (
    INPUT_LEVELS,
    WEIGHT_LEVELS,
    RoundedLinear,
    weight_steps,
)

_OPSETS: Final = (helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1))
_IR_VERSION: Final = 10
_MASKED: Final = -1e4

Value = str


class _Graph:
    """A graph that grows node by node; unless ``rounded``, all its layers are exact."""

    def __init__(self, rounded: bool) -> None:
        self._rounded = rounded
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []

    def input(self, name: str, kind: int, shape: Sequence[str | int]) -> Value:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def constant(self, values: Tensor | NDArray[Any] | np.generic) -> Value:
        array = values.detach().numpy() if isinstance(values, Tensor) else values
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, operator: str, *inputs: Value, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; the name of its output, or of its outputs."""
        names = [f"value_{len(self._nodes)}_{at}" for at in range(outputs)]
        domain = "com.microsoft" if operator == "MatMulIntegerToFloat" else ""
        self._nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def linear(self, states: Value, *layers: Any) -> Any:
        """``x W' + b`` of one or more layers over the same states, their outputs side by side."""
        weight = torch.cat([layer.weight for layer in layers]).detach()
        has_bias = layers[0].bias is not None
        bias = [self.constant(torch.cat([layer.bias for layer in layers]))] if has_bias else []
        rounded = [layer for layer in layers if isinstance(layer, RoundedLinear)]
        if not (self._rounded and rounded):
            product = self.node("MatMul", states, self.constant(weight.T))
            return self.node("Add", product, *bias) if bias else product
        steps = weight_steps(weight)
        integers = (weight / steps[:, None]).round().clamp(-WEIGHT_LEVELS, WEIGHT_LEVELS)
        # Layers of the same states share bounds.
        low, high = (bound.item() for bound in rounded[0].bounds())
        step = (high - low) / INPUT_LEVELS
        scale = self.constant(np.float32(step))
        offset = self.constant(np.uint8(round(-low / step)))
        return self.node(
            "MatMulIntegerToFloat",
            *(
                self.node("QuantizeLinear", states, scale, offset),
                self.constant(integers.T.to(torch.int8)),
            ),
            *(scale, self.constant(steps), offset, "", *bias),
        )

    def rows(self, table: nn.Embedding, ids: Value) -> Any:
        """Rows of a table, which is stored in 8 bits with a step for each row."""
        weight = table.weight.detach()
        if not self._rounded:
            return self.node("Gather", self.constant(weight), ids)
        integers, steps = map(self.constant, _rounded_rows(weight))
        found = self.node("Cast", self.node("Gather", integers, ids), to=TensorProto.FLOAT)
        return self.node("Mul", found, self.node("Gather", steps, ids))

    def table(self, weight: Tensor) -> Any:
        """All rows of a table that is stored in 8 bits; the runtime unpacks it as it loads."""
        if not self._rounded:
            return self.constant(weight)
        integers, steps = map(self.constant, _rounded_rows(weight))
        return self.node("Mul", self.node("Cast", integers, to=TensorProto.FLOAT), steps)

    def norm(self, states: Value, layer: nn.LayerNorm) -> Any:
        weights = self.constant(layer.weight), self.constant(layer.bias)
        return self.node("LayerNormalization", states, *weights, axis=-1, epsilon=layer.eps)

    def save(self, path: Path, outputs: dict[str, tuple[Value, int, Sequence[str | int]]]) -> None:
        """Write the graph; ``outputs`` are names with value, type and shape."""
        for name, (value, _, _) in outputs.items():
            self._nodes.append(helper.make_node("Identity", [value], [name]))
        told = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, (_, kind, shape) in outputs.items()
        ]
        graph = helper.make_graph(self._nodes, path.stem, self._inputs, told, self._constants)
        model = helper.make_model(graph, opset_imports=_OPSETS, ir_version=_IR_VERSION)
        onnx.save(model, path)


def export_programs(model: TextParser, folder: Path, rounded: bool = True) -> None:
    """Write the programs of a model on the CPU, with 8-bit integers or with 32-bit numbers."""
    _write_pieces(model, folder / PIECES, rounded)
    _write_words(model, folder / WORDS, rounded)
    _write_relations(model, folder / RELATIONS, rounded)


def _write_pieces(model: TextParser, path: Path, rounded: bool) -> None:
    encoder, width = model.encoder, model.encoder.config.hidden_size
    graph = _Graph(rounded)
    ids = graph.input("ids", TensorProto.INT32, ["B", "L"])
    surface = graph.input("surface", TensorProto.INT32, ["B", "L"])
    mask = graph.input("mask", TensorProto.BOOL, ["B", "L"])
    states = _embedded(graph, model, ids, surface)
    zero, masked = graph.constant(np.float32(0)), graph.constant(np.float32(_MASKED))
    bias_BL = graph.node("Where", mask, zero, masked)
    bias = graph.node("Unsqueeze", bias_BL, graph.constant(np.array([1, 2])))
    for layer in encoder.encoder.layer:
        states = _layer(graph, layer, states, bias, encoder.config)
    after = graph.node(
        "Pad",
        graph.node("Slice", states, *(graph.constant(np.array([at])) for at in (1, 2**31 - 1, 1))),
        graph.constant(np.array([0, 0, 0, 0, 1, 0])),
    )
    pairs = graph.node("Concat", states, after, axis=2)
    kind = TensorProto.FLOAT
    graph.save(
        path,
        {
            "states": (states, kind, ["B", "L", width]),
            "boundary": (graph.linear(pairs, model.boundary), kind, ["B", "L", 3]),
            "split": (
                graph.linear(states, model.split),
                kind,
                ["B", "L", model.split.out_features],
            ),
        },
    )


def _embedded(graph: _Graph, model: TextParser, ids: Value, surface: Value) -> Any:
    """The sum of a piece's vectors; positions count from 0, or as RoBERTa's behind the padding."""
    embeddings = model.encoder.embeddings
    first = first_position(model.encoder.config)
    positions = embeddings.position_embeddings.weight.detach()[first:]
    kind = embeddings.token_type_embeddings.weight.detach()[0]
    length = graph.node("Slice", graph.node("Shape", ids), *map(graph.constant, _LAST))
    begin, step = graph.constant(np.array([0])), graph.constant(np.array([1]))
    axis = graph.constant(np.array([0]))
    placed = graph.node("Slice", graph.table(positions + kind), begin, length, axis, step)
    words = graph.node("Add", graph.rows(embeddings.word_embeddings, ids), placed)
    written = graph.node("Gather", graph.constant(model.surface.weight), surface)
    return graph.norm(graph.node("Add", words, written), embeddings.LayerNorm)


_LAST: Final = (np.array([1]), np.array([2]), np.array([0]), np.array([1]))
"""Start, end, axis and step of the second entry of a shape."""


def _layer(graph: _Graph, layer: Any, states: Value, bias: Value, config: Any) -> Any:
    attention, heads = layer.attention.self, config.num_attention_heads
    parts = graph.linear(states, attention.query, attention.key, attention.value)
    query, key, value = graph.node("Split", parts, outputs=3, axis=2, num_outputs=3)
    width = config.hidden_size // heads
    shape = graph.constant(np.array([0, 0, heads, width]))
    query, value = (
        graph.node("Transpose", graph.node("Reshape", part, shape), perm=[0, 2, 1, 3])
        for part in (query, value)
    )
    key = graph.node("Transpose", graph.node("Reshape", key, shape), perm=[0, 2, 3, 1])
    scale = graph.constant(np.float32(width**-0.5))
    scores = graph.node("Mul", graph.node("MatMul", query, key), scale)
    weights = graph.node("Softmax", graph.node("Add", scores, bias), axis=-1)
    read = graph.node("Transpose", graph.node("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.node("Reshape", read, graph.constant(np.array([0, 0, config.hidden_size])))
    output = graph.linear(joined, layer.attention.output.dense)
    states = graph.norm(graph.node("Add", output, states), layer.attention.output.LayerNorm)
    inner = graph.node("Gelu", graph.linear(states, layer.intermediate.dense))
    output = graph.linear(inner, layer.output.dense)
    return graph.norm(graph.node("Add", output, states), layer.output.LayerNorm)


def _write_words(model: TextParser, path: Path, rounded: bool) -> None:
    width, sizes = model.encoder.config.hidden_size, model.sizes
    graph = _Graph(rounded)
    pooled = graph.input("words", TensorProto.FLOAT, ["W", width])
    index = graph.input("index", TensorProto.INT32, ["W"])
    last = graph.constant(np.int32(PLACES - 1))
    place = graph.node("Gather", graph.constant(model.place.weight), graph.node("Min", index, last))
    words = graph.node("Add", pooled, place)
    outputs: dict[str, tuple[Value, int, Sequence[str | int]]] = {}
    hidden = {
        name: graph.node("Gelu", graph.linear(words, layer)) for name, layer in model.hidden.items()
    }
    for column, layer in model.tags.items():
        scores = graph.linear(hidden["lemma" if column == "lemma" else "tags"], layer)
        chosen = graph.node("ArgMax", scores, axis=1, keepdims=0)
        outputs[column] = (chosen, TensorProto.INT64, ["W"])
    known = graph.node("Concat", graph.constant(model.root[None]), words, axis=0)
    states = {
        "arc_dependent": (model.arc_dependent, sizes.arc),
        "arc_head": (model.arc_head, sizes.arc),
        "relation_dependent": (model.relation_dependent, sizes.relation),
        "relation_head": (model.relation_head, sizes.relation),
    }
    for name, (layer, size) in states.items():
        value = graph.node("Gelu", graph.linear(known, layer))
        if name == "arc_dependent":
            value = graph.linear(value, model.arc)
        outputs[name] = (value, TensorProto.FLOAT, ["H", size])
    graph.save(path, outputs)


def _write_relations(model: TextParser, path: Path, rounded: bool) -> None:
    size = model.sizes.relation
    classes = model.relation.out_features // (size + 1)
    graph = _Graph(rounded)
    dependents = graph.input("dependents", TensorProto.FLOAT, ["W", size])
    heads = graph.input("heads", TensorProto.FLOAT, ["W", size])
    weights = graph.linear(dependents, model.relation)
    weights = graph.node("Reshape", weights, graph.constant(np.array([-1, classes, size + 1])))
    padded = graph.node(
        "Pad", heads, graph.constant(np.array([0, 0, 0, 1])), graph.constant(np.float32(1))
    )
    heads_WR1 = graph.node("Unsqueeze", padded, graph.constant(np.array([2])))
    scores = graph.node(
        "Squeeze", graph.node("MatMul", weights, heads_WR1), graph.constant(np.array([2]))
    )
    graph.save(path, {"scores": (scores, TensorProto.FLOAT, ["W", classes])})


def _rounded_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as 8-bit integers, and the step of each. *Shape:* (rows, D), (rows, 1)."""
    steps = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
    return (weight / steps).round().to(torch.int8), steps
