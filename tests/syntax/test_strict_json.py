from __future__ import annotations

import pytest

from syntax.strict_json import parse_json


@pytest.mark.parametrize("allow_nan", [True, False])
@pytest.mark.parametrize("nested", ["[" * 90_000, "[" * 90_000 + "]" * 90_000, '{"a":' * 90_000])
def test_deeply_nested_json_is_a_value_error(nested, allow_nan):
    for text in (nested, nested.encode()):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(text, allow_nan=allow_nan)


def test_nan_and_infinity_can_be_refused():
    assert parse_json("[Infinity]") == [float("inf")]
    with pytest.raises(ValueError, match="Infinity is not JSON"):
        parse_json(b"[Infinity]", allow_nan=False)
