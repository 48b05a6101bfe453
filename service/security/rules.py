"""Requirements of each route: a role of the caller's key, and a type of body.

A route without a line is for reading if its method is; else it takes the role that may do
everything, so that a forgotten route is closed rather than open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

from starlette._utils import get_route_path
from starlette.routing import compile_path
from starlette.types import Scope

Role = Literal["read", "parse", "admin"]
"""``read``: look at stored data, and at the service. ``parse``: also send texts, which are stored.
``admin``: also load and unload models, cancel and retry jobs, delete, query the store by SQL, and
list the texts of others.
"""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
"""Roles, of which each may do what those before it may."""

JSON: Final = ("application/json",)
NDJSON: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl")

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Rule:
    """The least role for a route, and the media types of its body, the documented one first."""

    role: Role
    body: tuple[str, ...] = ()


RULES: Final[Mapping[tuple[str, str], Rule]] = {
    ("GET", "/info"): Rule("read"),
    ("GET", "/models"): Rule("read"),
    ("GET", "/models/{name:path}"): Rule("read"),
    ("POST", "/models/{name:path}/load"): Rule("admin"),
    ("POST", "/models/{name:path}/unload"): Rule("admin"),
    ("POST", "/parse"): Rule("parse", JSON),
    ("GET", "/parses/{key}"): Rule("read"),
    ("DELETE", "/parses/{key}"): Rule("admin"),
    ("POST", "/draw"): Rule("read", JSON),
    ("POST", "/features"): Rule("parse", JSON),
    ("GET", "/features/{key}"): Rule("read"),
    ("GET", "/api/models"): Rule("read"),
    # Both parse, and POST keeps what it parsed. The route reads forms itself, as LINDAT's does.
    ("GET", "/api/process"): Rule("parse"),
    ("POST", "/api/process"): Rule("parse"),
    ("GET", "/datasets"): Rule("read"),
    # Texts that others sent to be parsed. Without this line the next one would show them.
    ("GET", "/datasets/adhoc/examples"): Rule("admin"),
    ("GET", "/datasets/{name}/examples"): Rule("read"),
    # Reads all texts, and can keep two cores busy until its deadline.
    ("POST", "/sql"): Rule("admin", JSON),
    ("POST", "/datasets/{name}/backfill"): Rule("parse", NDJSON),
    ("GET", "/jobs"): Rule("read"),
    ("GET", "/jobs/{job_id}"): Rule("read"),
    ("DELETE", "/jobs/{job_id}"): Rule("admin"),
    ("POST", "/jobs/{job_id}/retry"): Rule("admin"),
    ("GET", "/jobs/{job_id}/events"): Rule("read"),
    ("GET", "/metrics"): Rule("read"),
}

_PATTERNS: Final = [
    (method, compile_path(route)[0], rule) for (method, route), rule in RULES.items()
]


@lru_cache(maxsize=1024)
def rule_of(method: str, path: str) -> Rule:
    """Rule of the route of a request.

    >>> rule_of("POST", "/models/udpipe/english-ewt/unload").role
    'admin'
    >>> rule_of("PUT", "/no/such/route").role
    'admin'
    """
    for known, pattern, rule in _PATTERNS:
        if known == method and pattern.match(path):
            return rule
    return Rule("read" if method in _READING else "admin")


def path_of(scope: Scope) -> str:
    """Path of a request as routes have it: below the app's mount, and without a last slash.

    The router removes the mount by the same function, so that the two cannot disagree.

    >>> path_of({"path": "/nlp/parse/", "root_path": "/nlp"})
    '/parse'
    """
    return get_route_path(scope).rstrip("/") or "/"


def may(role: Role, needed: Role) -> bool:
    """True if a role includes another.

    >>> may("parse", "read"), may("parse", "admin")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)
