"""The process that loads a model once and forks the workers that use it.

Forking after the load lets the workers share the model's memory (55 of 57 MB), makes a new worker
in milliseconds, and keeps ``fork`` away from the service, whose threads would not survive it.

The service speaks to the nursery over a *control* socket: the model to load, then one byte and a
number per command. When the control socket closes, or the kernel reports the service's death, the
nursery ends its workers and itself.
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
from service.processes import die_with, give_way
from service.workers.wire import receive, send
from syntax.errors import ModelLoadError, ParsebankError

COMMAND: Final = struct.Struct("!cI")
"""``F`` forks a worker that serves the socket sent along; ``K`` kills the worker with that pid."""

FORK: Final = b"F"
KILL: Final = b"K"

_NICENESS: Final = 5

Answer = Callable[[Sequence[ParseInput]], Iterator[Outcome]]
"""What a worker makes of a batch."""


def main() -> None:
    """Serve one model; arguments are the control socket's descriptor and the service's pid."""
    control = socket.socket(fileno=int(sys.argv[1]))
    die_with(parent=int(sys.argv[2]))
    own_helper()
    give_way(_NICENESS)
    for asked in (signal.SIGINT, signal.SIGTERM):
        # A terminal or systemd sends these to every process of the service at once. It is for the
        # service to say when its parsers have finished, and for the kernel should it not.
        signal.signal(asked, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):  # the service has gone, or given it up
        _serve(control)


def _serve(control: socket.socket) -> None:
    """Load the model that the service names, and tend its workers."""
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
    # What is there before the first fork stays shared: the collector never touches it again.
    gc.freeze()
    _tend(control, lambda batch: parse(batch, limits))


def _tend(control: socket.socket, answer: Answer) -> None:
    """Fork, kill and bury workers until the service goes."""
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
                    _bury(children)
                if control in ready and not _obey(control, children, answer):
                    break
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _obey(control: socket.socket, children: set[int], answer: Answer) -> bool:
    """Carry out one command; ``False`` when the service has closed the control socket."""
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
    nursery = os.getpid()
    pid = os.fork()
    if pid == 0:
        # os._exit whatever happens: the child must never run on in the nursery's loop.
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            die_with(parent=nursery)
            _work(channel, answer)
        except (EOFError, ConnectionError):
            pass  # the service has no more use for it
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(0)
    return pid


def _work(channel: socket.socket, answer: Answer) -> None:
    """Answer batches, text by text, so that the service knows where a worker was when it died."""
    send(channel, os.getpid())
    while True:
        batch: list[ParseInput] = receive(channel)
        for outcome in answer(batch):
            send(channel, outcome)


def _bury(children: set[int]) -> None:
    while children:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        children.discard(pid)


if __name__ == "__main__":
    main()
