"""Talk to Parsebank: `Client`, `AsyncClient`, and the readers that feed benchmarks to it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.client.async_client import AsyncClient
    from clients.client.client import Client

__all__ = ["AsyncClient", "Client"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line starts without an HTTP library.
    if name == "Client":
        from clients.client.client import Client

        return Client
    if name == "AsyncClient":
        from clients.client.async_client import AsyncClient

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
