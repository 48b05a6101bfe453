"""Parts of a model that stay as they are while the rest learns."""

from __future__ import annotations

from torch import nn


def frozen_modules(model: nn.Module) -> nn.ModuleList:
    """The outermost modules whose parameters are all frozen; a module without any is none of them.

    A run leaves them in eval mode, with all that they contain: what does not learn has no dropout,
    so that what reads its states finds the same ones in every pass.

    >>> model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Linear(1, 1), nn.Dropout()))
    >>> _ = model[1].requires_grad_(False)
    >>> list(frozen_modules(model)) == [model[1]]
    True
    """
    learns = [parameter.requires_grad for parameter in model.parameters()]
    if learns and not any(learns):
        return nn.ModuleList([model])
    return nn.ModuleList(one for child in model.children() for one in frozen_modules(child))
