"""The fork server: a process that loads a model once and forks the workers that parse with it.

Workers share the model's memory (55 of 57 MB) and start in milliseconds. The service itself has
threads and must not fork.

The service sends the model over a *control* socket, then commands of one byte and a number. When
the control socket closes, or the kernel reports the service's death, the fork server kills its
workers and exits.
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from service.logs import own_helper
from service.parsers import BACKENDS, ParseInput, load_parser
from service.parsers.base import Outcome, one_by_one
from service.processes import exit_with_parent, lower_priority
from service.workers.wire import receive, send
from syntax.errors import ModelLoadError, ParsebankError

COMMAND: Final = struct.Struct("!cI")
"""Commands: ``F`` forks a worker for the socket that comes with it; ``K`` kills a pid."""

FORK: Final = b"F"
KILL: Final = b"K"

_NICENESS: Final = 5

Answer = Callable[[Sequence[ParseInput]], Iterator[Outcome]]


def main() -> None:
    """Serve one model. Arguments: descriptor of the control socket, pid of the service."""
    control = socket.socket(fileno=int(sys.argv[1]))
    exit_with_parent(parent=int(sys.argv[2]))
    own_helper()
    lower_priority(_NICENESS)
    for asked in (signal.SIGINT, signal.SIGTERM):
        # A terminal or systemd sends these signals to every process of the service. The service
        # itself decides when its parsers stop; if it dies, the kernel ends this process.
        signal.signal(asked, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):  # the service has gone
        _load(control)


def _load(control: socket.socket) -> None:
    model, limits, device = receive(control)
    try:
        parser = load_parser(model, device)
    except ParsebankError as error:
        send(control, error)
        return
    except OSError as error:
        what = f"{model.path} cannot be loaded: {error.strerror or type(error).__name__}"
        send(control, ModelLoadError(what, path=str(model.path)))
        return
    send(control, parser.identity.fingerprint)
    parse = parser.parse_many if BACKENDS[model.backend].bulk else partial(one_by_one, parser)
    # Objects made before the first fork stay shared, because the collector ignores them.
    gc.freeze()
    _serve(control, lambda batch: parse(batch, limits))


def _serve(control: socket.socket, answer: Answer) -> None:
    """Fork, kill and reap workers until the service closes the control socket."""
    children: set[int] = set()
    wakeup, alarm = socket.socketpair()
    for end in (wakeup, alarm):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(control, selectors.EVENT_READ)
            selector.register(wakeup, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if wakeup in ready:
                    wakeup.recv(4096)
                    _reap(children)
                if control in ready and not _handle(control, children, answer):
                    break
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _handle(control: socket.socket, children: set[int], answer: Answer) -> bool:
    """Execute a command; ``False`` when the service has closed the control socket."""
    command, sockets, _, _ = socket.recv_fds(control, COMMAND.size, 1, socket.MSG_WAITALL)
    if len(command) < COMMAND.size:
        return False
    verb, pid = COMMAND.unpack(command)
    if verb == FORK:
        with socket.socket(fileno=sockets[0]) as channel:
            children.add(_fork(control, channel, answer))
    elif pid in children:
        os.kill(pid, signal.SIGKILL)
    return True


def _fork(control: socket.socket, channel: socket.socket, answer: Answer) -> int:
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        # The child must always end in os._exit, never return into the fork server's loop.
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            exit_with_parent(parent=parent)
            _work(channel, answer)
        except (EOFError, ConnectionError):
            pass  # the service has closed the socket
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    return pid


def _work(channel: socket.socket, answer: Answer) -> None:
    """Answer text by text, so that the service knows on which text a worker died."""
    send(channel, os.getpid())
    while True:
        batch: list[ParseInput] = receive(channel)
        for outcome in answer(batch):
            send(channel, outcome)


def _reap(children: set[int]) -> None:
    while children:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        children.discard(pid)


if __name__ == "__main__":
    main()
