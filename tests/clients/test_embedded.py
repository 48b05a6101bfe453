"""How an app lives inside a client; the service itself is in `test_client`."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from clients import Client
from clients.client.embedded import BlockingTransport, EmbeddedTransport
from clients.client.retries import Retries
from syntax.errors import ExampleError, ParsebankError
from syntax.examples import DatasetSpec, Example, Segment

URL = "http://app"
SPEC = DatasetSpec("d", "dev", "en", ("text",))


class Diary(list):
    """What happened to the app, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = threading.Event()

    def app(self, *, startup: Exception | None = None) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette):
            if startup is not None:
                raise startup
            self.append(("started", asyncio.current_task()))
            yield
            self.append(("stopped", asyncio.current_task()))

        async def size(request: Request) -> Response:
            return PlainTextResponse(str(len(await request.body())))

        async def endless(_: Request) -> Response:
            try:
                self.waiting.set()
                await asyncio.Event().wait()
            finally:
                await asyncio.to_thread(self.append, ("given up", None))

        async def bug(_: Request) -> Response:
            raise ZeroDivisionError

        routes = [
            Route("/size", size, methods=["GET", "POST"]),
            Route("/endless", endless),
            Route("/info", bug),
            Route("/datasets/d/backfill", size, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)

    @property
    def events(self) -> list[str]:
        return [name for name, _ in self]


@pytest.fixture
def diary() -> Diary:
    return Diary()


def test_the_app_starts_with_the_first_request_and_stops_with_close(diary):
    client = httpx.Client(base_url=URL, transport=BlockingTransport(diary.app()))
    assert diary.events == []
    assert client.post("/size", content=b"abc").text == "3"
    assert client.get("/size").text == "0"
    assert diary.events == ["started"]
    client.close()
    client.close()
    assert diary.events == ["started", "stopped"]
    assert diary[0][1] is diary[1][1], "one task must enter and leave the lifespan"


async def test_embedded_transport_runs_the_app_lifespan(diary):
    transport = EmbeddedTransport(diary.app())
    async with httpx.AsyncClient(base_url=URL, transport=transport) as client:
        sizes = await asyncio.gather(*(client.post("/size", content=b"a" * n) for n in range(5)))
        assert [size.text for size in sizes] == ["0", "1", "2", "3", "4"]
        assert diary.events == ["started"]
    assert diary.events == ["started", "stopped"]
    assert diary[0][1] is diary[1][1]


def test_a_client_that_made_no_request_closes(diary):
    httpx.Client(base_url=URL, transport=BlockingTransport(diary.app())).close()
    assert diary.events == []


def test_interrupted_request_is_cancelled_before_shutdown(diary):
    interrupted = threading.Event()

    def interrupt() -> None:
        diary.waiting.wait()
        # A signal that comes just before the main thread waits for a lock does not end that wait.
        while not interrupted.wait(0.2):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    client = httpx.Client(base_url=URL, transport=BlockingTransport(diary.app()))
    with ThreadPoolExecutor() as threads:
        threads.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.get("/endless")
        interrupted.set()
    client.close()
    assert diary.events == ["started", "given up", "stopped"]


def test_close_cancels_requests_of_other_threads(diary):
    client = httpx.Client(base_url=URL, transport=BlockingTransport(diary.app()))
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(client.get, "/endless")
        diary.waiting.wait()
        client.close()
    assert isinstance(answer.exception(), CancelledError)
    assert diary.events == ["started", "given up", "stopped"]


def test_a_failure_to_start_is_raised_by_every_request(diary):
    app = diary.app(startup=ParsebankError("no models"))
    with httpx.Client(base_url=URL, transport=BlockingTransport(app)) as client:
        for _ in range(2):
            with pytest.raises(ParsebankError, match="no models"):
                client.get("/size")


def test_bodies_are_streamed(diary):
    with httpx.Client(base_url=URL, transport=BlockingTransport(diary.app())) as client:
        assert client.post("/size", content=(b"a" * 1000 for _ in range(50))).text == "50000"


def test_app_exception_is_answered_as_over_a_socket(diary):
    transport = BlockingTransport(diary.app())
    with (
        Client(URL, transport=transport, retries=Retries(attempts=1)) as client,
        pytest.raises(ParsebankError, match="answered 500"),
    ):
        client.info()


def failing_examples():
    yield Example("1", (Segment(text="a"),))
    raise ExampleError("broken file")


def test_examples_that_fail_raise_their_own_error(diary):
    with (
        Client(URL, transport=BlockingTransport(diary.app())) as client,
        pytest.raises(ExampleError, match="broken file"),
    ):
        client.backfill(SPEC, failing_examples())


FORGOTTEN = """
import asyncio
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from clients import Client
from clients.client.embedded import BlockingTransport
from clients.client.failures import ParsebankError

@asynccontextmanager
async def lifespan(_):
    yield
    await asyncio.to_thread(print, "stopped")

client = Client("http://app", transport=BlockingTransport(Starlette(lifespan=lifespan)))
try:
    client.info()
except ParsebankError:
    print("answered")
"""


def test_unclosed_embedded_client_shuts_down_at_exit():
    command = [sys.executable, "-c", FORGOTTEN]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("answered\nstopped\n", "", 0)


EMBEDDED = """
import sys
from clients import Client

settings = {"log_level": sys.argv[2]} if len(sys.argv) > 2 else {}
with Client.embedded(sys.argv[1], workers=1, job_workers=0, **settings) as client:
    client.parse("Birds sing.", lang="en")
"""


@pytest.mark.slow_cases
@pytest.mark.parametrize("level", [None, "info"])
def test_an_embedded_service_is_silent_unless_asked(tmp_path, monkeypatch, level):
    monkeypatch.delenv("PARSEBANK_LOG_LEVEL", raising=False)
    command = [sys.executable, "-c", EMBEDDED, str(tmp_path), *([level] if level else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert ("route=/parse" in done.stderr) if level else done.stderr == ""


KEPT_OUT = """
import sys
from service.processes import without_pandas
import pyarrow as pa

without_pandas()
pa.table({"word": ["bird"]})
assert "pandas" not in sys.modules
import pandas
"""


def test_a_process_of_ours_keeps_pandas_from_pyarrow_alone():
    pytest.importorskip("pandas")
    subprocess.run([sys.executable, "-c", KEPT_OUT], check=True)
