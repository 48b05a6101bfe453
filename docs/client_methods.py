"""Gives the client's methods their signatures and docstrings on the site.

`clients.Client.parse` is `clients.client.calls.parse` at run time, sent and decoded. The site is
made from the source alone, where it is an assignment.
"""

from __future__ import annotations

from typing import Any

from griffe import ExprSubscript, Extension, Function, Module


class ClientMethods(Extension):
    """Replaces ``name = _blocking(calls.name)`` by the function that makes the call."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Called once with each package that the pages name."""
        if pkg.path != "clients":
            return
        client, calls = pkg["client.client.Client"], pkg["client.calls"]
        for name, member in list(client.members.items()):
            if member.is_attribute and f"calls.{name}" in str(member.value):
                client.set_member(name, _answering(calls[name]))


def _answering(call: Function) -> Function:
    """The same function, with ``T`` for the returned ``Call[T]``."""
    returns = call.returns
    return Function(
        call.name,
        parameters=call.parameters,
        returns=returns.slice if isinstance(returns, ExprSubscript) else returns,
        docstring=call.docstring,
        lineno=call.lineno,
        endlineno=call.endlineno,
    )
