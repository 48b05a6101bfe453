"""The stack-pointer decoder of the order-free parser (Ma et al. 2018; Ahmad et al. 2019).

Letters in shapes: ``B`` sentences, ``H`` positions: ROOT and the words; ``S`` steps, ``K``
hypotheses of one sentence, ``D`` width, ``R`` relations, the symbols before them included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from syntax.batches import IGNORE
from trainer.nn.biaffine import Biaffine, FeatureDropout, keep_torch_weights, states_at
from trainer.nn.context import in_full_precision
from trainer.nn.graph_parser import HIDDEN, SYMBOLS

Search: TypeAlias = Literal["arcs", "joint"]
"""The score of a beam's moves: of the arc alone, where the best relation of those that are kept
counts from then on, as in the release; or of arc and relation together, where a node that points
to itself has no relation."""


class Steps(NamedTuple):
    """The steps of the right trees (`syntax.trees.pointers`); int64, *shape* (B, S) each.

    Targets are -100 behind the last step. Relations of children count the symbols; a node that
    points to itself has 0, and -100 is not learned.
    """

    tops: Tensor
    above: Tensor
    targets: Tensor
    relations: Tensor


class StackParser(nn.Module):
    """An LSTM over the nodes on top of the stack, which point to positions.

    Its input is the state of the node and of its head. It begins with a summary of the sentence: a
    weighted mean of all states, or what it is given. Dropout is the same at all steps.
    """

    def __init__(
        self,
        width: int,
        arc: int,
        relation: int,
        relations: int,
        inputs: int,
        hidden: int,
        dropout: float,
        input_dropout: float,
        state_dropout: float,
    ) -> None:
        super().__init__()
        self.weigh: nn.Linear | None = nn.Linear(width, 1)
        self.start = nn.Linear(width, hidden)
        self.source, self.cell = nn.Linear(width, inputs), nn.LSTMCell(inputs, hidden)
        self.arc_top, self.arc_target = nn.Linear(hidden, arc), nn.Linear(width, arc)
        self.relation_top = nn.Linear(hidden, relation)
        self.relation_target = nn.Linear(width, relation)
        self.arcs = Biaffine(arc, arc, 1, as_one=True)
        self.relations = Biaffine(relation, relation, SYMBOLS + relations, as_one=True)
        self.dropout = FeatureDropout(dropout)
        self.input_dropout, self.state_dropout = input_dropout, state_dropout
        keep_torch_weights(self)
        setattr(self.cell, "own_initial_weights", True)  # noqa: B010 - no attribute of the class

    def mean(self, states_BHD: Tensor, real_BH: Tensor) -> Tensor:
        """The weighted mean of the states. *Shape:* (B, D)."""
        assert self.weigh is not None
        scores_BH = self.weigh(states_BHD)[..., 0].float()
        weights_BH = scores_BH.masked_fill(~real_BH, HIDDEN).softmax(-1)
        mean_BD: Tensor = (weights_BH[:, :, None] * states_BHD).sum(1)
        return mean_BD

    def loss(self, states_BHD: Tensor, summary_BD: Tensor, real_BH: Tensor, steps: Steps) -> Tensor:
        """The negative log-likelihood of the right steps, a scalar.

        Heads of children, of nodes that point to themselves, and the relations of both are four
        means, each over its own steps.
        """
        first_BD = self.start(summary_BD)
        states_BHD = self.dropout(states_BHD)
        tops_BSD = self._run(states_BHD, steps.tops, steps.above, first_BD)
        arc_top, arc_target = self._together(self.arc_top(tops_BSD), self.arc_target(states_BHD))
        relation_top, relation_target = self._together(
            self.relation_top(tops_BSD), self.relation_target(states_BHD)
        )
        scores_BSH = self.arcs(arc_top, arc_target)[:, 0]
        scores_BSH = scores_BSH.masked_fill(~real_BH[:, None], HIDDEN)
        chosen_BSD = states_at(relation_target, steps.targets.clamp(min=0))
        scores_BSR = self.relations.of_pairs(relation_top, chosen_BSD)
        leaf_BS = steps.targets == steps.tops
        losses = []
        for scores, right in ((scores_BSH, steps.targets), (scores_BSR, steps.relations)):
            each_BS = F.cross_entropy(
                scores.transpose(1, 2), right, ignore_index=IGNORE, reduction="none"
            )
            for part_BS in (leaf_BS, ~leaf_BS):
                part_BS = part_BS & (right != IGNORE)
                losses.append((each_BS * part_BS).sum() / part_BS.sum().clamp(min=1))
        return torch.stack(losses).sum()

    @torch.no_grad()
    def parse(
        self,
        states_HD: Tensor,
        summary_D: Tensor,
        beam: int,
        ordered: bool,
        search: Search = "arcs",
    ) -> tuple[list[int], list[int]]:
        """The likeliest heads (0 is ROOT) and relations of a sentence that a beam finds.

        With ``ordered``, children come in the order of the sentence, unless no hypothesis can.
        """
        first_1D = self.start(summary_D)[None]
        found = self._search(states_HD, first_1D, beam, True, search) if ordered else None
        if found is None:
            found = self._search(states_HD, first_1D, beam, False, search)
        assert found is not None
        return found.heads[1:], found.relations[1:]

    @in_full_precision
    def _search(
        self, states_HD: Tensor, memory_KD: Tensor, beam: int, ordered: bool, search: Search
    ) -> _Hypothesis | None:
        n, state_KD = len(states_HD), memory_KD.tanh()
        arc_target = F.elu(self.arc_target(states_HD))[None]
        relation_target = F.elu(self.relation_target(states_HD))[None]
        kept = [_Hypothesis(0.0, [0], [0, *[-1] * (n - 1)], [0] * n, [0] * n, n - 1)]
        for _ in range(2 * n - 1):
            tops = [one.stack[-1] for one in kept]
            above = [one.heads[top] for one, top in zip(kept, tops, strict=True)]
            inputs_KD = F.elu(self.source(states_HD[tops] + states_HD[above]))
            state_KD, memory_KD = self.cell(inputs_KD, (state_KD, memory_KD))
            arc_top = F.elu(self.arc_top(state_KD))[None]
            arcs_KH = self.arcs(arc_top, arc_target)[0, 0].log_softmax(-1)
            relation_top = F.elu(self.relation_top(state_KD))[None]
            to_child_KH = arcs_KH
            if search == "joint":
                types_RKH = self.relations(relation_top, relation_target)[0].log_softmax(0)
                to_child_KH = arcs_KH + types_RKH[SYMBOLS:].amax(0)
            to_itself, to_child = arcs_KH.tolist(), to_child_KH.tolist()
            found = [
                (one.score + gain, number, target)
                for number, one in enumerate(kept)
                for target, gain in one.moves(to_itself[number], to_child[number], ordered)
            ]
            if not found:
                return None
            found.sort(key=lambda move: -move[0])
            scores, chosen, targets = map(list, zip(*found[:beam], strict=True))
            types_KR = self.relations.of_pairs(
                relation_top[:, chosen], relation_target[:, targets]
            )[0].log_softmax(-1)
            if search == "arcs":  # of a node that points to itself, too; the symbols are among them
                gains = types_KR.amax(-1).tolist()
                scores = [score + gain for score, gain in zip(scores, gains, strict=True)]
            relations = types_KR[:, SYMBOLS:].argmax(-1).tolist()
            moves = zip(chosen, scores, targets, relations, strict=True)
            kept = [kept[at].after(score, to, relation) for at, score, to, relation in moves]
            state_KD, memory_KD = state_KD[chosen], memory_KD[chosen]
        return kept[0]

    @in_full_precision
    def _run(
        self, states_BHD: Tensor, tops_BS: Tensor, above_BS: Tensor, memory_BD: Tensor
    ) -> Tensor:
        """The states of the LSTM after each step. *Shape:* (B, S, D)."""
        both_BSD = states_at(states_BHD, tops_BS) + states_at(states_BHD, above_BS)
        inputs_BSD = F.elu(self.source(both_BSD))
        ones_BD = inputs_BSD.new_ones(len(inputs_BSD), inputs_BSD.shape[2])
        inputs_BSD = inputs_BSD * F.dropout(ones_BD, self.input_dropout, self.training)[:, None]
        mask_BD = F.dropout(torch.ones_like(memory_BD), self.state_dropout, self.training)
        state_BD, found = memory_BD.tanh(), []
        for inputs_BD in inputs_BSD.unbind(1):
            state_BD, memory_BD = self.cell(inputs_BD, (state_BD * mask_BD, memory_BD))
            found.append(state_BD)
        dropped_BSD: Tensor = self.dropout(torch.stack(found, dim=1))
        return dropped_BSD

    def _together(self, tops_BSD: Tensor, targets_BHD: Tensor) -> tuple[Tensor, Tensor]:
        """Both after ELU and one mask of features for the two."""
        both = self.dropout(torch.cat([F.elu(tops_BSD), F.elu(targets_BHD)], dim=1))
        return both[:, : tops_BSD.shape[1]], both[:, tops_BSD.shape[1] :]


@dataclass(slots=True)
class _Hypothesis:
    """A part of a tree; a head is -1, and the latest child 0, where there is none yet."""

    score: float
    stack: list[int]
    heads: list[int]
    relations: list[int]
    last: list[int]
    left: int

    def moves(
        self, to_itself: list[float], to_child: list[float], ordered: bool
    ) -> list[tuple[int, float]]:
        """Targets of the top, and what each adds to the score."""
        top = self.stack[-1]
        found = [(top, to_itself[top])] if top or not self.left else []
        first = self.last[top] + 1 if ordered else 1
        children = (x for x in range(first, len(self.heads)) if self.heads[x] < 0)
        return [*found, *((child, to_child[child]) for child in children)]

    def after(self, score: float, target: int, relation: int) -> _Hypothesis:
        top = self.stack[-1]
        if target == top:
            stack = self.stack[:-1]
            return _Hypothesis(score, stack, self.heads, self.relations, self.last, self.left)
        heads, relations, last = self.heads.copy(), self.relations.copy(), self.last.copy()
        heads[target], relations[target], last[top] = top, relation, target
        return _Hypothesis(score, [*self.stack, target], heads, relations, last, self.left - 1)
