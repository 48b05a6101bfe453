"""API keys: a file of hashes that the commands write and the service follows.

A key is 256 random bits, so its SHA-256 cannot be guessed backwards; slow, salted hashes would
only slow down every request.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, Self

from limits import RateLimitItem

from service.logs import get_logger
from service.security.rates import parse_rate
from service.security.rules import ROLES, Role, may
from syntax.errors import ForbiddenError, SpecError, UnauthorizedError
from syntax.files import write_whole
from syntax.strict_json import parse_json

PREFIX: Final = "pb_"
"""People and secret scanners recognise a key by its beginning."""

_RECHECK_SECONDS: Final = 1.0
_ID_LENGTH: Final = 8

_log = get_logger("parsebank.security")


@dataclass(frozen=True)
class ApiKey:
    """One key, as the file holds it: never the key itself.

    Attributes:
        name: Owner. Several keys may have one name, while the old one is replaced.
        sha256: Of the whole key, in hexadecimal digits.
        expires: Last day on which it is valid, in UTC; ``None`` for ever.
        rate_limit: Of its own, such as ``600/minute``; ``None``: the service's.
        rate, ends: ``rate_limit`` and ``expires``, ready to be used.
    """

    name: str
    sha256: str
    created: date
    expires: date | None = None
    rate_limit: str | None = None
    disabled: bool = False
    role: Role = "admin"
    rate: RateLimitItem | None = field(init=False, repr=False, compare=False)
    ends: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable():
            raise SpecError(f"{self.name!r} is not a name for a key; use letters and digits")
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise SpecError(f"the sha256 of key {self.name!r} is not 64 hexadecimal digits")
        if self.role not in ROLES:
            raise SpecError(
                f"the role of key {self.name!r} is {self.role!r}; known are {', '.join(ROLES)}"
            )
        # Worked out once: each request looks at them.
        rate = None if self.rate_limit is None else parse_rate(self.rate_limit)
        object.__setattr__(self, "rate", rate)
        object.__setattr__(self, "ends", _end_of(self.expires))

    @property
    def id(self) -> str:
        """Beginning of the hash: tells keys of one name apart."""
        return self.sha256[:_ID_LENGTH]

    def check(self) -> None:
        """Refuse a disabled or expired key with an `UnauthorizedError`."""
        if self.disabled:
            raise UnauthorizedError(f"key {self.id} of {self.name!r} is disabled; use another")
        if time.time() >= self.ends:
            raise UnauthorizedError(f"key {self.id} of {self.name!r} has expired; use a new one")

    def check_role(self, needed: Role) -> None:
        if not may(self.role, needed):
            raise ForbiddenError(
                f"key {self.id} of {self.name!r} has the role {self.role!r}, and this takes "
                f"{needed!r}; use a key of that role, or ask the operator for one (`parsebank "
                f"keys add NAME --role {needed}`)",
                role=self.role,
                needed=needed,
            )

    def to_json(self) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "name": self.name,
            "sha256": self.sha256,
            "created": self.created.isoformat(),
        }
        if self.expires is not None:
            entry["expires"] = self.expires.isoformat()
        if self.rate_limit is not None:
            entry["rate_limit"] = self.rate_limit
        if self.role != "admin":
            entry["role"] = self.role
        return entry | ({"disabled": True} if self.disabled else {})

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Self:
        try:
            days = {
                name: date.fromisoformat(entry[name])
                for name in ("created", "expires")
                if entry.get(name) is not None
            }
            return cls(**{**entry, **days})
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            if isinstance(error, SpecError):
                raise
            raise SpecError(f"an entry is not an API key: {error}") from None


class KeyFile:
    """The file of keys: ``{"keys": [...]}``, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[ApiKey]:
        try:
            content = parse_json(self.path.read_bytes())
            entries = content["keys"]
        except OSError as error:
            raise SpecError(
                f"the keys file {self.path} cannot be read ({error.strerror}); "
                "`parsebank keys add NAME` makes one"
            ) from None
        except (ValueError, TypeError, KeyError):
            raise SpecError(f'{self.path} is not a keys file; expected {{"keys": [...]}}') from None
        return [ApiKey.from_json(entry) for entry in entries]

    def write(self, keys: Iterable[ApiKey]) -> None:
        """Replace the file at once: readers see the old keys or the new ones, never half."""
        content = json.dumps({"keys": [key.to_json() for key in keys]}, indent=1) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, content.encode(), mode=0o600)

    def add(
        self,
        name: str,
        *,
        rate_limit: str | None = None,
        expires: date | None = None,
        role: Role = "admin",
    ) -> tuple[str, ApiKey]:
        """Make a key; the returned secret is shown once and kept nowhere."""
        secret = PREFIX + secrets.token_urlsafe(32)
        today = datetime.now(UTC).date()
        key = ApiKey(name, digest(secret), today, expires, rate_limit, role=role)
        kept = self.read() if self.path.exists() else []
        self.write([*kept, key])
        return secret, key

    def revoke(self, name_or_id: str) -> list[ApiKey]:
        """Remove and return the key of an id, or every key of a name."""
        keys = self.read()
        gone = [key for key in keys if name_or_id in (key.id, key.name)]
        if not gone:
            known = ", ".join(f"{key.name} ({key.id})" for key in keys) or "none"
            raise SpecError(f"no key {name_or_id!r} in {self.path}; it holds: {known}")
        self.write(key for key in keys if key not in gone)
        return gone


class KeyStore:
    """The keys of a running service, which follows changes of their file.

    The file is checked at most once a second. When it becomes unreadable, the old keys stay valid
    and the error is logged.
    """

    def __init__(self, path: Path) -> None:
        self._file = KeyFile(path)
        self._seen = self._look()
        self._keys = _by_hash(self._file.read())
        self._next_look = time.monotonic() + _RECHECK_SECONDS

    def find(self, secret: str) -> ApiKey:
        """Look a key up; an unknown or invalid one is an `UnauthorizedError`."""
        if time.monotonic() >= self._next_look:
            self._follow()
        sha256 = digest(secret)
        key = self._keys.get(sha256)
        # The lookup leaks at most a prefix of a hash, which does not reveal a key;
        # the comparison takes constant time.
        if key is None or not hmac.compare_digest(key.sha256, sha256):
            raise UnauthorizedError(
                "the API key is not known; ask the operator for one (`parsebank keys add NAME`)"
            )
        key.check()
        return key

    def _follow(self) -> None:
        self._next_look = time.monotonic() + _RECHECK_SECONDS
        seen = self._look()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._keys = _by_hash(self._file.read())
        except SpecError as error:
            _log.error("keys file is broken; the old keys stay", message=error.message)
        else:
            _log.info("keys read again", keys=len(self._keys))

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = self._file.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def digest(secret: str) -> str:
    """SHA-256 of a key.

    >>> digest("pb_x")[:8]
    '97421cd3'
    """
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _by_hash(keys: Iterable[ApiKey]) -> dict[str, ApiKey]:
    return {key.sha256: key for key in keys}


def _end_of(day: date | None) -> float:
    if day is None:
        return float("inf")
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() + 86_400
