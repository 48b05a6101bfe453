"""A parser of given words as ONNX programs, which `service.parsers.words` runs.

The ``folder`` module there describes the files. Words and relations are two programs: relations are
scored for the heads that a spanning tree has chosen, since scores of every pair of words would take
R times the memory.

Letters in shapes: ``B`` sentences, ``L`` positions, ``W`` words, ``D`` width.
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import torch
from onnxruntime import InferenceSession
from torch import Tensor, nn

from syntax.errors import SpecError
from syntax.parsing.folder import RELATIONS, WORDS
from syntax.trees.ud import UPOS
from trainer.batch import SyntaxBatch
from trainer.evaluation.trained import TrainedRun, load_run
from trainer.nn.parser import BiaffineParser, Words
from trainer.nn.stock import positions_of
from trainer.results import read_result
from trainer.tasks import DependencyOptions
from trainer.tasks.dependency import DependencyHead

FORMAT: Final = 1
_WORDS_NAMES: Final = ("ids", "mask", "words", "sources", "real")
_RELATIONS_NAMES: Final = ("states", "heads")
_TOLERANCE: Final = 1e-4
"""Largest difference of an exported score from the model's own; rounding is far below."""


class WordsProgram(nn.Module):
    """From pieces to the states of words, scores of their heads, and scores of their tags.

    The encoder is that of a model that reads no trees.
    """

    def __init__(self, encoder: nn.Module, head: DependencyHead) -> None:
        super().__init__()
        self.encoder, self.head = encoder, head

    def forward(
        self,
        ids_BL: Tensor,
        mask_BL: Tensor,
        pieces_BL: Tensor,
        sources_BW: Tensor,
        real_BW: Tensor,
    ) -> tuple[Tensor, ...]:
        """States (B, W, D), scores of heads (B, W, W + 1) and, with a tagger, of tags (B, W, 17).

        Pieces are numbers of words, -1 for none; sources are the words whose pieces tell the state
        of each word. Masks are bool, all else int64.
        """
        batch = SyntaxBatch.from_tensors(ids_BL, mask_BL, labels={})
        mixed = "hidden_states" in self.head.needs
        encoding = self.encoder(batch, **({"output_hidden_states": True} if mixed else {}))
        layers = encoding.hidden_states if mixed else (encoding.last_hidden_state,)
        sentences_BW = real_BW.long() - 1
        words = Words(pieces_BL, sources_BW, sentences_BW, torch.zeros_like(sources_BW))
        states_BWD = self.head.parser.states(layers, words)
        arcs_BWH = self.head.parser(states_BWD, sentences_BW)
        if self.head.tagger is None:
            return states_BWD, arcs_BWH
        return states_BWD, arcs_BWH, self.head.tagger(states_BWD)[..., 1:].float()


class RelationsProgram(nn.Module):
    """From the states of words and their heads to scores of relations."""

    def __init__(self, parser: BiaffineParser) -> None:
        super().__init__()
        self.parser = parser

    def forward(self, states_BWD: Tensor, heads_BW: Tensor) -> Tensor:
        return self.parser.relate(states_BWD, heads_BW)


def export_parser(run: Path, folder: Path) -> dict[str, Any]:
    """Write the parser of a run as ``words.onnx``, ``relations.onnx`` and ``parser.json``.

    The run is of ``dependency.v1``. The result is the content of ``parser.json``.
    """
    trained = _checked(load_run(run), run)
    trained.model.to("cpu").eval()  # type: ignore[arg-type]
    head = trained.model.head
    assert isinstance(head, DependencyHead)
    longest = _max_pieces(trained)
    folder.mkdir(parents=True, exist_ok=True)
    words, relations = WordsProgram(trained.model.encoder, head), RelationsProgram(head.parser)
    inputs = _some_words(trained, 3, 11, 6)
    shapes = _shapes(longest)
    _export(words, inputs, _WORDS_NAMES, shapes, folder / WORDS)
    known = (words(*inputs)[0], torch.zeros(inputs[-1].shape, dtype=torch.int64))
    _export(relations, known, _RELATIONS_NAMES, shapes[-2:], folder / RELATIONS)
    _check_same(trained, words, relations, folder)
    content = _card(trained, run, longest)
    text = json.dumps(content, indent=2, ensure_ascii=False, sort_keys=True)
    (folder / "parser.json").write_text(f"{text}\n", encoding="utf-8")
    return content


def _checked(trained: TrainedRun, run: Path) -> TrainedRun:
    recipe, task = trained.recipe, trained.recipe.task
    if not isinstance(task, DependencyOptions):
        raise SpecError(
            f"{run} was trained for {task.name}, which gives no trees; take a run of "
            "dependency.v1, as `parsebank train RECIPE --set task.name=dependency.v1` makes it"
        )
    if recipe.model.reads_words or recipe.model.use_syntax:
        raise SpecError(
            f"the encoder of {run}, {recipe.model.name}, reads more than pieces: the trees of "
            "another parser, or stored states. Train with model.use_syntax=false"
        )
    if task.parser.tag_width:
        raise SpecError(
            f"the parser of {run} reads the tag of each word, which a text does not have; train "
            "with task.parser.tag_width=0"
        )
    if task.parser.word_width:
        raise SpecError(
            f"the parser of {run} reads embeddings of words, and an exported one has pieces alone; "
            "train with task.parser.word_width=0"
        )
    if task.parser.char_width:
        raise SpecError(
            f"the parser of {run} reads characters, with an LSTM that torch.export unrolls to one "
            "number of words; train with task.parser.char_width=0"
        )
    if task.parser.context in ("lstm", "highway_lstm"):
        raise SpecError(
            f"the parser of {run} has an LSTM, which the exporter unrolls to one number of words; "
            "train with task.parser.context=none or transformer"
        )
    return trained


def _max_pieces(trained: TrainedRun) -> int:
    data, stock = trained.recipe.data, trained.model.encoder.stock
    if trained.recipe.model.weights == "random" or stock is None:
        return data.max_length
    return positions_of(stock) or data.max_length


def _shapes(longest: int) -> tuple[dict[int, Any], ...]:
    """The dimensions that vary, of the inputs of `WordsProgram`."""
    rows = torch.export.Dim("rows", min=1, max=1 << 16)
    pieces = torch.export.Dim("pieces", min=1, max=longest)
    words = torch.export.Dim("words", min=1, max=longest)
    return (*({0: rows, 1: pieces},) * 3, *({0: rows, 1: words},) * 2)


def _some_words(trained: TrainedRun, B: int, L: int, W: int) -> tuple[Tensor, ...]:
    """Inputs of `WordsProgram`: any pieces, the last sequence shorter; no special tokens."""
    drawn = torch.Generator().manual_seed(0)
    vocabulary = int(trained.model.config.encoder_config().vocab_size)
    ids_BL = torch.randint(vocabulary, (B, L), generator=drawn)
    mask_BL, real_BW = torch.ones(B, L, dtype=torch.bool), torch.ones(B, W, dtype=torch.bool)
    mask_BL[-1, L - 1 :], real_BW[-1, max(W - 1, 1) :] = False, False
    pieces_BL = torch.arange(L).clamp(max=W - 1).expand(B, L) - 1
    pieces_BL = torch.where(mask_BL, pieces_BL, -1)
    sources_BW = torch.arange(W).expand(B, W).clamp(max=max(W - 2, 0)).contiguous()
    return ids_BL, mask_BL, pieces_BL, sources_BW, real_BW


def _export(
    module: nn.Module,
    inputs: tuple[Tensor, ...],
    names: Sequence[str],
    shapes: tuple[dict[int, Any], ...],
    path: Path,
) -> None:
    # It warns that torchvision is not there, of which no parser has an operator.
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                module.eval(),
                inputs,
                dynamo=True,
                dynamic_shapes=shapes,
                input_names=names,
                verbose=False,
            )
            assert program is not None
            program.save(path)
    except Exception as error:
        # The exporter raises whatever the code that it traces does.
        first = (str(error).strip().splitlines() or [""])[0]
        raise SpecError(
            f"torch cannot export this parser ({type(error).__name__}: {first[:300]}); train it on "
            "another encoder, such as a BERT or an XLM-R"
        ) from error


def _run(program: Any, *inputs: Tensor) -> list[Tensor]:
    names = [one.name for one in program.get_inputs()]
    arrays = [one.numpy() for one in inputs]
    return [*map(torch.from_numpy, program.run(None, dict(zip(names, arrays, strict=True))))]


@torch.no_grad()
def _check_same(
    trained: TrainedRun, words: WordsProgram, relations: RelationsProgram, folder: Path
) -> None:
    """Refuse programs that score a batch of another shape otherwise than the model does."""
    own, own_relations = (InferenceSession(folder / name) for name in (WORDS, RELATIONS))
    for shape in ((1, 2, 1), (5, 14, 9)):
        inputs = _some_words(trained, *shape)
        heads_BW = torch.zeros(inputs[-1].shape, dtype=torch.int64)
        expected, found = words(*inputs), _run(own, *inputs)
        pairs = [*zip(expected, found, strict=True)]
        related = relations(expected[0], heads_BW)
        pairs.append((related, _run(own_relations, found[0], heads_BW)[0]))
        for right, given in pairs:
            if right.shape != given.shape or not torch.allclose(right, given, atol=_TOLERANCE):
                raise SpecError(
                    "the exported parser gives other scores than the model; train it on another "
                    "encoder, such as a BERT or an XLM-R"
                )


def _card(trained: TrainedRun, run: Path, longest: int) -> dict[str, Any]:
    recipe, task, needs = trained.recipe, trained.recipe.task, trained.requirements
    assert isinstance(task, DependencyOptions)
    result = read_result(run)
    scores = {
        name: value for name, value in result["scores"].items() if isinstance(value, int | float)
    }
    return {
        "format": FORMAT,
        "languages": sorted(needs.parsers),
        "treebank": recipe.data.dataset,
        "relations": list(task.parser.relations),
        "tags": {"upos": list(UPOS[1:])} if task.upos else {},
        "max_pieces": longest,
        "single_root": task.single_root,
        "tokenizer": {"name": needs.tokenizer_name, "fingerprint": needs.tokenizer},
        "trained": {
            "parsebank": version("parsebank"),
            "torch": torch.__version__,
            "recipe": recipe.name,
            "dataset_version": recipe.data.version,
            "dev": scores,
        },
    }
