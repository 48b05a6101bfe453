"""What the manager and a worker process agree on."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from service.settings import Settings

GRACE_SECONDS: Final = 20.0
"""How long a worker that was told to end may finish the text or commit in hand."""


class Orders(BaseModel):
    """What a worker is started with.

    Attributes:
        owner: Name under which it claims shards.
        parent: Process id of the service; the worker does not outlive it.
        settings: The service's settings.
    """

    owner: str
    parent: int
    settings: Settings
