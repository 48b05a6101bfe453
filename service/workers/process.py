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
from service.processes import how_ended, python_command, python_environment
from service.workers import nursery
from service.workers.memory import Growth
from service.workers.nursery import COMMAND, FORK, KILL
from service.workers.wire import pack, receive_async
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError, WorkerDiedError

_GRACE_SECONDS: Final = 2.0
_FORK_SECONDS: Final = 30.0


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
    async def start(cls, model: ModelFile, limits: Limits, device: str, timeout: float) -> Nursery:
        """Start the process and wait until it has loaded the model.

        Args:
            model: The model.
            limits: What its workers accept.
            device: ``auto``, ``cpu`` or ``cuda``.
            timeout: Seconds.

        Raises:
            ModelLoadError: The model cannot be loaded, or not within ``timeout`` seconds.
        """
        try:
            started = cls(*_spawn())
        except OSError as error:
            raise ModelLoadError(
                f"no process could be started for {model.name}: {error}; check the machine's "
                "memory and the limits on processes and open files"
            ) from error
        try:
            async with asyncio.timeout(timeout):
                answer = await started._introduce(model, limits, device)
        except (TimeoutError, EOFError) as error:
            if isinstance(error, EOFError):
                what = f"failed: its process {await started._ended()}"
                advice = "check the file and the machine's memory"
            else:
                what, advice = f"took over {timeout:g} s", "raise model_load_seconds"
            await started.stop()
            raise ModelLoadError(
                f"loading {model.path} {what}; {advice}", path=str(model.path)
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
            WorkerDiedError: The nursery, or the new worker, is gone or does not answer.
        """
        reader, writer = await _streams(self._order())
        try:
            async with asyncio.timeout(_FORK_SECONDS):
                pid = await receive_async(reader)
        except (EOFError, TimeoutError):
            writer.close()
            raise WorkerDiedError("a parser process died as it started") from None
        except BaseException:
            writer.close()
            raise
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

    async def _ended(self) -> str:
        """How the process ended, which has closed its socket."""
        try:
            status = await asyncio.to_thread(self._process.wait, _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return how_ended(status)

    def _order(self) -> socket.socket:
        """Ask for a worker; gives our end of its socket."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise WorkerDiedError(f"no socket for a parser process: {error}") from error
        with theirs:
            try:
                socket.send_fds(self._control, [COMMAND.pack(FORK, 0)], [theirs.fileno()])
            except OSError:
                ours.close()
                raise WorkerDiedError("the process that holds the model has died") from None
        return ours

    async def _introduce(
        self, model: ModelFile, limits: Limits, device: str
    ) -> ParsebankError | str:
        """Name the model, and hear its fingerprint or why it cannot be loaded."""
        self._control.sendall(pack((model, limits, device)))
        answers = self._control.dup()
        answers.setblocking(False)
        reader, writer = await _streams(answers)
        try:
            answer: ParsebankError | str = await receive_async(reader)
        finally:
            writer.close()
        return answer


class Worker:
    """A forked worker and the socket to it.

    Attributes:
        pid: Its process id.
        texts: Texts that it was given so far.
        growth: How much it has grown since the first look.
    """

    def __init__(
        self,
        pid: int,
        nursery: Nursery,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid = pid
        self.texts = 0
        self.growth = Growth(pid)
        self._nursery = nursery
        self._reader = reader
        self._writer = writer

    @property
    def is_gone(self) -> bool:
        """Whether the worker is known to have closed its socket."""
        return self._reader.at_eof() or self._writer.is_closing()

    def send(self, batch: Sequence[ParseInput]) -> None:
        """Give it texts to parse; answers come one by one, in order."""
        self.texts += len(batch)
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


async def _streams(channel: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Streams on a socket, which is closed if the caller gives up meanwhile."""
    try:
        return await asyncio.open_connection(sock=channel)
    except BaseException:
        channel.close()
        raise


def _spawn() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a nursery in its own process group: a Ctrl-C is for the service to handle."""
    control, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(
                [*python_command(nursery.__name__), str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                process_group=0,
                stdin=subprocess.DEVNULL,
                env=python_environment(),
            )
        except OSError:
            control.close()
            raise
    return process, control
