"""Handles of the service on a fork server and its parser processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import Final

from service.parsers import Limits, ModelFile, ParseInput
from service.processes import how_ended, python_command, python_environment
from service.workers import forkserver
from service.workers.forkserver import COMMAND, FORK, KILL
from service.workers.memory import Usage
from service.workers.wire import pack, receive_async
from syntax import Parse
from syntax.errors import ModelLoadError, ParsebankError, WorkerDiedError

_GRACE_SECONDS: Final = 2.0
_FORK_SECONDS: Final = 30.0


class ForkServer:
    """A running fork server, which has loaded one model."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.fingerprint = ""
        self._process = process
        self._control = control

    @classmethod
    async def start(
        cls, model: ModelFile, limits: Limits, device: str, timeout: float
    ) -> ForkServer:
        """Wait until the model is loaded; a `ModelLoadError` after ``timeout`` seconds."""
        try:
            started = cls(*(_started_ahead() or _spawn()))
        except OSError as error:
            raise ModelLoadError(
                f"no process could be started for {model.name}: {error}; check the machine's "
                "memory and the limits on processes and open files"
            ) from error
        try:
            async with asyncio.timeout(timeout):
                answer = await started._introduce(model, limits, device)
        except TimeoutError:
            await started.stop()
            raise ModelLoadError(
                f"loading {model.path} took over {timeout:g} s; raise model_load_seconds",
                path=str(model.path),
            ) from None
        except (EOFError, ConnectionError):
            ended = await started._ended()
            await started.stop()
            raise ModelLoadError(
                f"loading {model.path} failed: its process {ended}; check the file and the "
                "machine's memory",
                path=str(model.path),
                process_died=True,
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

    async def fork(self) -> ParserProcess:
        """Fork a worker; a `WorkerDiedError` if a process is dead or does not answer."""
        reader, writer = await _streams(self._request_worker())
        try:
            async with asyncio.timeout(_FORK_SECONDS):
                pid = await receive_async(reader)
        except (EOFError, TimeoutError):
            writer.close()
            raise WorkerDiedError("a parser process died as it started") from None
        except BaseException:
            writer.close()
            raise
        return ParserProcess(pid, self, reader, writer)

    def kill(self, pid: int) -> None:
        """Kill through the fork server, which knows if the pid is valid."""
        with contextlib.suppress(OSError):
            self._control.send(COMMAND.pack(KILL, pid))

    async def stop(self) -> None:
        """Stop the fork server, which kills and reaps its children first."""
        self._control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _GRACE_SECONDS)
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            await asyncio.to_thread(self._process.wait)

    async def _ended(self) -> str:
        """Words for the end of the process; call this once the socket is closed."""
        try:
            status = await asyncio.to_thread(self._process.wait, _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "does not answer"
        return how_ended(status)

    def _request_worker(self) -> socket.socket:
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
        """Send the model; returns its fingerprint, or the error of loading it."""
        self._control.sendall(pack((model, limits, device)))
        answers = self._control.dup()
        answers.setblocking(False)
        reader, writer = await _streams(answers)
        try:
            answer: ParsebankError | str = await receive_async(reader)
        finally:
            writer.close()
        return answer


class ParserProcess:
    """A forked process that parses, and the socket to it."""

    def __init__(
        self,
        pid: int,
        fork_server: ForkServer,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.pid = pid
        self.texts = 0
        self.usage = Usage(pid)
        self._fork_server = fork_server
        self._reader = reader
        self._writer = writer

    @property
    def is_gone(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    def send(self, batch: Sequence[ParseInput]) -> None:
        """Send texts; the outcomes arrive one by one, in order."""
        self.texts += len(batch)
        self._writer.write(pack(list(batch)))

    async def receive(self) -> Parse | ParsebankError:
        """Outcome of a text; an `EOFError` if the process is dead."""
        answer: Parse | ParsebankError = await receive_async(self._reader)
        return answer

    def kill(self) -> None:
        self._fork_server.kill(self.pid)
        self._writer.close()

    async def end(self) -> None:
        self.kill()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


async def _streams(channel: socket.socket) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open streams on a socket, which is closed if the caller is cancelled."""
    try:
        return await asyncio.open_connection(sock=channel)
    except BaseException:
        channel.close()
        raise


_Spawned = tuple[subprocess.Popen[bytes], socket.socket]

_ahead: Final[list[_Spawned]] = []


def start_ahead() -> None:
    """Start the process of the first fork server before its model is known.

    It imports parsers while this process imports other things. Linux ends it with the thread that
    started it, so that only the main thread does.
    """
    if not _ahead and threading.current_thread() is threading.main_thread():
        with contextlib.suppress(OSError):  # `ForkServer.start` tells it
            _ahead.append(_spawn())


def _started_ahead() -> _Spawned | None:
    """The process that was started ahead, if it still runs; a fork of this one has it not."""
    while _ahead:
        process, control = _ahead.pop()
        if process.poll() is None:
            return process, control
        control.close()
    return None


def _spawn() -> _Spawned:
    """Start in a process group of its own, so that Ctrl-C reaches only the service."""
    control, theirs = socket.socketpair()
    with theirs:
        try:
            process = subprocess.Popen(
                [*python_command(forkserver.__name__), str(theirs.fileno()), str(os.getpid())],
                pass_fds=(theirs.fileno(),),
                process_group=0,
                stdin=subprocess.DEVNULL,
                env=python_environment(),
            )
        except OSError:
            control.close()
            raise
    return process, control
