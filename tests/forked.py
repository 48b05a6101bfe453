"""Commands in processes that have imported everything when they begin: forked from one server.

A training process imports for as long as it trains in a test. `installed` writes two programs:
``python`` does what ``python -m MODULE ARGUMENTS`` does, and ``bin/parsebank`` is ours. Each asks
the server of this test process for a fork, and has its output, signals and exit status.
What libraries read from the environment as they are imported is the server's: ``HF_HUB_OFFLINE``,
``OMP_NUM_THREADS``. Tests of a start from cold use the interpreter.
"""

from __future__ import annotations

import atexit
import gc
import json
import multiprocessing.util
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any

from service.processes import exit_with_parent, python_environment
from syntax.registry import Registry

CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
arguments = {first} + sys.argv[1:]
while arguments[0] in ("-m", "-u"):
    arguments.pop(0)
request = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, lambda number, _: server.send(bytes([number])))
    status = int.from_bytes(server.recv(4), "big", signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
"""Without site-packages it starts in a hundredth of a second. Killed, its fork is killed, too."""


@cache
def installed() -> Path:
    """The folder of the two programs; the server ends with this process."""
    folder = TemporaryDirectory(prefix="forked-")
    atexit.register(folder.cleanup)
    address = str(Path(folder.name, "socket"))
    for name, first in (("python", []), ("bin/parsebank", ["parsebank"])):
        program = Path(folder.name, name)
        program.parent.mkdir(exist_ok=True)
        code = CLIENT.format(python=sys.executable, first=first, address=address)
        program.write_text(code, "utf-8")
        program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, "-m", __name__, address, str(os.getpid())],
        env=python_environment(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES=""),
        stdout=subprocess.PIPE,
    )
    atexit.register(server.kill)
    assert server.stdout is not None
    with server.stdout:
        assert server.stdout.read(1), "the server did not start"
    return Path(folder.name)


class Fork:
    """A forked process, and the connection to the program that asked for it."""

    def __init__(self, connection: socket.socket, pid: int) -> None:
        self.connection = connection
        self.pid = pid
        self.handle = os.pidfd_open(pid)

    def obey(self) -> bool:
        """Send it the signal that its program got; it is killed, false, if that is gone."""
        asked = self.connection.recv(1)
        os.kill(self.pid, asked[0] if asked else signal.SIGKILL)
        return bool(asked)

    def report(self) -> None:
        """Tell its program how it ended."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            self.connection.send(code.to_bytes(4, "big", signed=True))
        self.connection.close()
        os.close(self.handle)


def serve(address: str) -> list[str]:
    """Fork for each request; return, in the fork alone, the arguments of its command."""
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen()
        selector.register(listener, selectors.EVENT_READ)
        os.write(sys.stdout.fileno(), b".")
        while True:
            for key, _ in selector.select():
                fork: Fork | None = key.data
                if fork is None:
                    connection, _ = listener.accept()
                    request, files = _received(connection)
                    if not (pid := os.fork()):
                        connection.close()
                        return _become(request, files)
                    for file in files:
                        os.close(file)
                    fork = Fork(connection, pid)
                    selector.register(fork.connection, selectors.EVENT_READ, fork)
                    selector.register(fork.handle, selectors.EVENT_READ, fork)
                elif key.fd == fork.handle:
                    selector.unregister(fork.handle)
                    with suppress(KeyError):
                        selector.unregister(fork.connection)
                    fork.report()
                # Ended and reported in this very round, it has nobody to obey any more.
                elif fork.connection.fileno() >= 0 and not fork.obey():
                    selector.unregister(fork.connection)


def _received(connection: socket.socket) -> tuple[list[Any], list[int]]:
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    missing, parts = int.from_bytes(head, "big"), []
    while missing:
        parts.append(connection.recv(missing))
        missing -= len(parts[-1])
    return json.loads(b"".join(parts)), files


def _become(request: list[Any], files: list[int]) -> list[str]:
    """Take over the arguments, folder, variables and streams of the program that asked."""
    arguments, folder, variables = request
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    return arguments


def _import_all() -> None:
    for package in ("trainer", "clients", "featurestore"):
        for module in walk_packages(import_module(package).__path__, f"{package}."):
            import_module(module.name)
    for name in ("service.app", "service.jobs.worker", "tests.trainer.recorded"):
        import_module(name)
    import_module("torch.distributed.run")
    import_module("torch._dynamo")
    for one in gc.get_objects():
        if isinstance(one, Registry):
            one._has_plugins = False  # a fork's plugins are those of its own environment


def _run(module: str) -> int:
    """Exit status of a module; libraries that wait at exit for threads of the server do not run."""
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status: object = 0
    except SystemExit as ended:
        status = ended.code
        if isinstance(status, str):
            sys.stderr.write(f"{status}\n")
    except BaseException:  # as the interpreter tells of any error
        traceback.print_exc()
        status = 1
    multiprocessing.util._exit_function()
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)


def main() -> None:
    address, parent = sys.argv[1:]
    exit_with_parent(parent=int(parent))
    _import_all()
    gc.freeze()
    module, *arguments = serve(address)
    sys.argv = [module, *arguments]
    sys.modules.pop(module, None)  # or runpy warns that it was imported
    os._exit(_run(module))


if __name__ == "__main__":
    main()
