"""A linear-chain conditional random field over tags (Lafferty, McCallum and Pereira 2001).

Letters in shapes: ``B`` sequences, ``T`` tokens, ``C`` tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn

FORBIDDEN: Final = -1e9
"""Added to the score of a transition that the tags do not allow."""

_ENDS: Final = frozenset("OLUES")
"""After these letters no mention is open."""

_STARTS: Final = frozenset("OBUS")
"""With these letters no mention goes on."""


class ConditionalRandomField(nn.Module):
    """Scores of whole sequences of tags: emissions, and transitions from tag to tag.

    The scheme (`allowed_transitions`) limits the best sequence alone; the likelihood sums over all
    sequences, as AllenNLP's module does. Names are of BIO or BIOUL, in id order; with ``ends`` the
    first and the last tag of a sequence have scores of their own.
    """

    own_initial_weights = True

    allowed: Tensor
    start_C: Tensor
    end_C: Tensor

    def __init__(self, names: Sequence[str], ends: bool = True) -> None:
        super().__init__()
        size = len(names)
        self.transitions_CC = nn.Parameter(torch.empty(size, size))
        for name in ("start_C", "end_C"):
            if ends:
                self.register_parameter(name, nn.Parameter(torch.empty(size)))
            else:
                self.register_buffer(name, torch.zeros(size))
        allowed = torch.where(torch.tensor(allowed_transitions(names)), 0.0, FORBIDDEN)
        self.register_buffer("allowed", allowed)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.02)

    def forward(self, emissions_BTC: Tensor, tags_BT: Tensor, real_BT: Tensor) -> Tensor:
        """Negative log-likelihood of each sequence's tags, float32 (B,); padding comes last."""
        emissions_BTC = emissions_BTC.float()
        return self._log_partition(emissions_BTC, real_BT) - self._score(
            emissions_BTC, tags_BT.clamp(min=0), real_BT
        )

    @torch.no_grad()
    def best(self, emissions_BTC: Tensor, real_BT: Tensor) -> Tensor:
        """The best sequence that the scheme allows (Viterbi 1967). *Shape:* (B, T), int64.

        0 on padding; of equally good tags the first counts.
        """
        emissions_BTC = emissions_BTC.float()
        B, T, C = emissions_BTC.shape
        found_BT = torch.zeros(B, T, dtype=torch.long, device=emissions_BTC.device)
        if not T:
            return found_BT
        steps_CC = self.transitions_CC + self.allowed[:C, :C]
        scores_BC = emissions_BTC[:, 0] + self.start_C + self.allowed[C, :C]
        itself_C = torch.arange(C, device=found_BT.device)
        came_from = []
        for token in range(1, T):
            best_BC, from_BC = (scores_BC[:, :, None] + steps_CC).max(1)
            real_B1 = real_BT[:, token, None]
            scores_BC = torch.where(real_B1, best_BC + emissions_BTC[:, token], scores_BC)
            came_from.append(torch.where(real_B1, from_BC, itself_C))
        tag_B = (scores_BC + self.end_C + self.allowed[:C, C]).argmax(1)
        found_BT[:, -1] = tag_B
        for token in range(T - 1, 0, -1):
            tag_B = came_from[token - 1].gather(1, tag_B[:, None])[:, 0]
            found_BT[:, token - 1] = tag_B
        return found_BT * real_BT

    def _log_partition(self, emissions_BTC: Tensor, real_BT: Tensor) -> Tensor:
        """Logarithm of the sum over all sequences, by the forward algorithm. *Shape:* (B,)."""
        scores_BC = emissions_BTC[:, 0] + self.start_C
        for token in range(1, emissions_BTC.shape[1]):
            next_BC = (scores_BC[:, :, None] + self.transitions_CC).logsumexp(1)
            next_BC = next_BC + emissions_BTC[:, token]
            scores_BC = torch.where(real_BT[:, token, None], next_BC, scores_BC)
        return (scores_BC + self.end_C).logsumexp(1)

    def _score(self, emissions_BTC: Tensor, tags_BT: Tensor, real_BT: Tensor) -> Tensor:
        emitted_BT = emissions_BTC.gather(2, tags_BT[:, :, None])[:, :, 0]
        steps_BT = self.transitions_CC[tags_BT[:, :-1], tags_BT[:, 1:]]
        last_B1 = (real_BT.sum(1, keepdim=True) - 1).clamp(min=0)
        return (
            self.start_C[tags_BT[:, 0]]
            + (emitted_BT * real_BT).sum(1)
            + (steps_BT * real_BT[:, 1:]).sum(1)
            + self.end_C[tags_BT.gather(1, last_B1)[:, 0]]
        )


def allowed_transitions(names: Sequence[str]) -> list[list[bool]]:
    """Tags that may follow another: row = before, column = behind.

    The last row is the start, the last column the end. Tags are of BIO, BIOUL (BILOU), or BIOES.

    >>> allowed_transitions(["O", "B-X", "I-X"])[0]
    [True, True, False, True]
    """
    scheme_ends = any(name[0] in "LUES" for name in names)
    rows = [[_may_follow(before, behind, scheme_ends) for behind in names] for before in names]
    for row, name in zip(rows, names, strict=True):
        row.append(not scheme_ends or name[0] in _ENDS)
    return [*rows, [*(name[0] in _STARTS for name in names), True]]


def to_bioul(tags: Sequence[str]) -> list[str]:
    """Tags of BIO in BIOUL: the last token of a mention is L, a mention of one token is U.

    >>> to_bioul(["B-PER", "I-PER", "O", "B-LOC"])
    ['B-PER', 'L-PER', 'O', 'U-LOC']
    """
    found = []
    for tag, behind in zip(tags, [*tags, "O"][1:], strict=True):
        ends = behind != f"I-{tag[2:]}"
        found.append({"B": "U", "I": "L"}.get(tag[0], tag[0]) + tag[1:] if ends else tag)
    return found


def bioul_names(names: Sequence[str]) -> tuple[str, ...]:
    """The tags of BIOUL for the types that tags of BIO have.

    >>> bioul_names(["O", "B-X", "I-X"])
    ('O', 'B-X', 'I-X', 'L-X', 'U-X')
    """
    types = dict.fromkeys(name[2:] for name in names if name != "O")
    return ("O", *(f"{letter}-{name}" for name in types for letter in "BILU"))


def _may_follow(before: str, behind: str, scheme_ends: bool) -> bool:
    same = before[2:] == behind[2:]
    if not scheme_ends:
        return behind[0] in _STARTS or (same and before != "O")
    if before[0] in _ENDS:
        return behind[0] in _STARTS
    return same and behind[0] not in _STARTS
