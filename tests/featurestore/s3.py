"""The object store of the tests, and the two ways to tell a store about it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Final
from uuid import uuid4

S3_PROGRAM: Final = Path(__file__).parent / "s3_process.py"
_BUCKET: Final = "parses-of-the-lab"


class S3:
    """A server of `s3_process`.

    Attributes:
        options: Say where it is: as ``storage_options``, or as environment variables.
    """

    def __init__(self, port: int) -> None:
        self.options = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "a-key",
            "AWS_SECRET_ACCESS_KEY": "its-secret",
            "AWS_REGION": "us-east-1",
        }
        self._server = f"http://127.0.0.1:{port}"
        url = f"{self._server}/{_BUCKET}"
        urllib.request.urlopen(urllib.request.Request(url, method="PUT")).close()

    def location(self) -> str:
        """A prefix that nobody has used yet."""
        return f"s3://{_BUCKET}/{uuid4().hex}/store"

    def sent(self, location: str) -> dict[str, int]:
        """Bytes of each file below a location that were sent so far, by path."""
        with urllib.request.urlopen(f"{self._server}/-/sent") as answer:
            sent: dict[str, int] = json.load(answer)
        prefix = location.removeprefix("s3:/")
        return {path: size for path, size in sent.items() if path.startswith(prefix)}
