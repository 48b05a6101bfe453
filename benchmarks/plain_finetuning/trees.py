"""The same with dependency trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.plain_finetuning.plain import IGNORED, Example, OverEncoder, Plain, first_pieces


class Trees(Plain):
    """Words with a head (0 is ROOT) and a relation each, by a biaffine parser of first pieces.

    Heads are the best of each word (Dozat and Manning 2017); scored by LAS. Its layers start as
    torch draws them, like those of our parsers.
    """

    def model(self) -> Any:
        self.relations = sorted({name for _, tree in self.train for _, name in tree})
        model = OverEncoder(self.setting.encoder, dropout=0.0)
        for name, width in (("arc", 500), ("relation", 100)):
            for side in ("dependent", "head"):
                model.layers[f"{name}-{side}"] = nn.Sequential(
                    nn.Linear(model.width, width), nn.LeakyReLU(0.1), nn.Dropout(0.33)
                )
        model.root = nn.Parameter(torch.randn(model.width) * 0.02)
        model.arcs = nn.Parameter(torch.empty(1, 501, 501))
        model.names = nn.Parameter(torch.empty(len(self.relations), 101, 101))
        for weights in (model.arcs, model.names):
            for one in weights:
                nn.init.xavier_uniform_(one)
        return model

    def loss(self, model: Any, batch: Sequence[Example]) -> Tensor:
        arcs_BWH, sides, lengths = self._scored(model, batch)
        heads_BW = torch.full(arcs_BWH.shape[:2], IGNORED)
        names_BW = heads_BW.clone()
        for row, ((_, tree), length) in enumerate(zip(batch, lengths, strict=True)):
            heads_BW[row, :length] = torch.tensor([head for head, _ in tree])
            names_BW[row, :length] = torch.tensor([self.relations.index(x) for _, x in tree])
        relations = self._related(model, sides, heads_BW.clamp(min=0))
        pairs = ((arcs_BWH, heads_BW), (relations, names_BW))
        losses = [
            nn.functional.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=IGNORED)
            for scores, gold in pairs
        ]
        return losses[0] + losses[1]

    def evaluate(self, model: Any) -> float:
        right = words = 0
        for batch in self.batches():
            arcs_BWH, sides, lengths = self._scored(model, batch)
            heads_BW = arcs_BWH.argmax(-1)
            names_BW = self._related(model, sides, heads_BW).argmax(-1)
            for row, ((_, tree), length) in enumerate(zip(batch, lengths, strict=True)):
                heads, names = heads_BW[row, :length].tolist(), names_BW[row, :length].tolist()
                found = zip(heads, (self.relations[name] for name in names), strict=True)
                right += sum(a == tuple(b) for a, b in zip(found, tree, strict=True))
                words += length
        return right / words

    def _scored(self, model: Any, batch: Sequence[Example]) -> tuple[Tensor, Any, list[int]]:
        """Scores of heads (B, W, 1 + W), projections for relations, and numbers of words."""
        lengths = [len(words) for words, _ in batch]
        encoded = self.encode([words for words, _ in batch], words=True)
        states_BLD = model(encoded)
        firsts_BW = torch.zeros(len(batch), max(lengths), dtype=torch.long)
        for row in range(len(batch)):
            for at, word in first_pieces(encoded.word_ids(row)):
                firsts_BW[row, word] = at
        words_BWD = states_BLD.gather(1, firsts_BW[..., None].expand(-1, -1, states_BLD.shape[2]))
        root_B1D = model.root.expand(len(batch), 1, -1)
        heads_BHD = torch.cat([root_B1D, words_BWD], 1)
        projected = {
            name: layer(words_BWD if name.endswith("dependent") else heads_BHD)
            for name, layer in model.layers.items()
        }
        left, right = (_with_one(projected[f"arc-{side}"]) for side in ("dependent", "head"))
        arcs_BWH = (left @ model.arcs[0]) @ right.transpose(1, 2)
        real_BH = torch.arange(heads_BHD.shape[1]) <= torch.tensor(lengths)[:, None]
        arcs_BWH = arcs_BWH.masked_fill(~real_BH[:, None], -1e9)
        itself_WH = torch.eye(max(lengths), dtype=torch.bool)
        arcs_BWH = arcs_BWH.masked_fill(nn.functional.pad(itself_WH, (1, 0)), -1e9)
        return arcs_BWH, projected, lengths

    def _related(self, model: Any, projected: Any, heads_BW: Tensor) -> Tensor:
        right_BHR = projected["relation-head"]
        chosen = right_BHR.gather(1, heads_BW[..., None].expand(-1, -1, right_BHR.shape[2]))
        left = _with_one(projected["relation-dependent"])
        return torch.einsum("bwi,rij,bwj->bwr", left, model.names, _with_one(chosen))


def _with_one(states: Tensor) -> Tensor:
    return nn.functional.pad(states, (0, 1), value=1.0)
