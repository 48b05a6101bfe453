"""The service's handles on a nursery and its workers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Sequence
from typing import Final

from service.parsers import Limits, ModelFile, ParseInput
from service.processes import python_command, python_environment
from service.workers import nursery
from service.workers.nursery import COMMAND, FORK, KILL
from service.workers.wire import pack, receive_async
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError, WorkerDiedError

_GRACE_SECONDS: Final = 2.0


class Nursery:
    """A running nursery: one model, as many workers as are asked for.

    Attributes:
        fingerprint: Of the parser that it has loaded.
    """

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.fingerprint = ""
        self._process = process
        self._control = control

    @classmethod
    async def start(cls, model: ModelFile, limits: Limits, timeout: float) -> Nursery:
        """Start the process and wait until it has loaded the model.

        Raises:
            ModelLoadError: The model cannot be loaded, or not within ``timeout`` seconds.
        """
        control, theirs = socket.socketpair()
        with theirs:
            started = cls(_spawn(theirs), control)
        try:
            async with asyncio.timeout(timeout):
                answer = await started._introduce(model, limits)
        except (TimeoutError, EOFError):
            await started.stop()
            raise ModelLoadError(
                f"loading {model.path} took over {timeout:g} s or ended its process; check the "
                "file and the machine's memory, or raise model_load_seconds",
                path=str(model.path),
            ) from None
        except asyncio.CancelledError:
            await started.stop()
            raise
        if isinstance(answer, ParsebankError):
            await started.stop()
            raise answer
        started.fingerprint = answer
        return started

    @property
    def pid(self) -> int:
        """Process id, which is also its process group."""
        return self._process.pid

    async def fork(self) -> Worker:
        """Fork a worker.

        Raises:
            WorkerDiedError: The nursery, or the new worker, is gone.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [COMMAND.pack(FORK, 0)], [theirs.fileno()])
            except OSError:
                ours.close()
                raise WorkerDiedError("the process that holds the model has died") from None
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            pid = await receive_async(reader)
        except BaseException as error:
            writer.close()
            if not isinstance(error, EOFError):
                raise
            raise WorkerDiedError("a parser process died as it started") from None
        return Worker(pid, self, reader, writer)

    def kill(self, pid: int) -> None:
        """Kill a worker; by the nursery, which knows whether the pid is still its child's."""
        with contextlib.suppress(OSError):
            self._control.send(COMMAND.pack(KILL, pid))

    async def stop(self) -> None:
        """End the nursery and every worker; it buries its children before it goes."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _GRACE_SECONDS)
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            await asyncio.to_thread(self._process.wait)

    async def _introduce(self, model: ModelFile, limits: Limits) -> ParsebankError | str:
        """Name the model, and hear its fingerprint or why it cannot be loaded."""
        self._control.sendall(pack((model, limits)))
        answers = self._control.dup()
        answers.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=answers)
        try:
            answer: ParsebankError | str = await receive_async(reader)
        finally:
            writer.close()
        return answer


class Worker:
    """A forked worker and the socket to it."""

    def __init__(
        self,
        pid: int,
        nursery: Nursery,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid = pid
        self._nursery = nursery
        self._reader = reader
        self._writer = writer

    @property
    def is_gone(self) -> bool:
        """Whether the worker is known to have closed its socket."""
        return self._reader.at_eof() or self._writer.is_closing()

    def send(self, batch: Sequence[ParseInput]) -> None:
        """Give it texts to parse; answers come one by one, in order."""
        self._writer.write(pack(list(batch)))

    async def receive(self) -> Parse | ParsebankError:
        """The next answer.

        Raises:
            EOFError: The worker is gone.
        """
        answer: Parse | ParsebankError = await receive_async(self._reader)
        return answer

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._nursery.kill(self.pid)
        self._writer.close()

    async def end(self) -> None:
        """Kill it if it lives, and wait until its socket is closed."""
        self.kill()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _spawn(control: socket.socket) -> subprocess.Popen[bytes]:
    """Start a nursery in its own process group: a Ctrl-C is for the service to handle."""
    return subprocess.Popen(
        [*python_command(nursery.__name__), str(control.fileno()), str(os.getpid())],
        pass_fds=(control.fileno(),),
        process_group=0,
        stdin=subprocess.DEVNULL,
        env=python_environment(),
    )
