"""Streams behind PyTorch's ``DataLoader``, whose worker processes read in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import IterableDataset, get_worker_info

from syntax.errors import SpecError

if TYPE_CHECKING:
    from featurestore import FeatureStream


class StreamDataset(IterableDataset[dict[str, Any]]):
    """The batches of a stream from its position to the end of its epoch.

    A ``DataLoader`` yields the batches of the stream in its order: of each rank, worker w of W
    reads the batches w, w + W, w + 2W, ... A stream yields whole batches, so ``batch_size`` is
    ``None``; arrays become tensors, lists stay. It needs ``buffers="fresh"``, since batches wait in
    a queue. A worker reads from a copy of the stream, so the stream itself does not move:
    ``stream.state_dict(after=n)`` is the position after n batches of the loader.

    Example:
        >>> stream = data.stream(batch_size=32, seed=0, epoch=3)            # doctest: +SKIP
        >>> loader = DataLoader(StreamDataset(stream), batch_size=None,
        ...     num_workers=2, multiprocessing_context="spawn")             # doctest: +SKIP
        >>> for taken, batch in enumerate(loader, start=1):                 # doctest: +SKIP
        ...     state = stream.state_dict(after=taken)
    """

    def __init__(self, stream: FeatureStream) -> None:
        if stream.options.buffers != "fresh":
            raise SpecError(
                f"the buffers of the stream are {stream.options.buffers!r}, and a loader keeps "
                "batches while it reads the next ones; make the stream with `buffers=fresh`"
            )
        self.stream = stream

    def __iter__(self) -> Iterator[dict[str, Any]]:
        process = get_worker_info()
        worker, workers = (0, 1) if process is None else (process.id, process.num_workers)
        return self.stream.share(worker, workers)

    def __len__(self) -> int:
        return self.stream.remaining
