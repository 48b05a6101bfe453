"""Client of Parsebank: `Client`, `AsyncClient`, and the readers that feed benchmarks to it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.client.async_client import AsyncClient
    from clients.client.client import Client
    from clients.progress import ProgressBar

__all__ = ["AsyncClient", "Client", "ProgressBar"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: the command line starts without an HTTP library.
    if name == "Client":
        from clients.client.client import Client

        return Client
    if name == "AsyncClient":
        from clients.client.async_client import AsyncClient

        return AsyncClient
    if name == "ProgressBar":
        from clients.progress import ProgressBar

        return ProgressBar
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
