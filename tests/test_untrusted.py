"""Checks of untrusted data: the value itself, or a short error that any terminal can show."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import nested
from hypothesis import given
from hypothesis import strategies as st

from carolus_env.system import untrusted
from carolus_env.system.untrusted import LONGEST_SHOWN, DataError

KINDS = (int, float, str, bool, list, dict)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(10**400, 10**401)
    | st.floats()
    | st.text()
    | st.sampled_from(["\x1b[2J", "\ud800", "x" * 5000, "\u202e", "\x7f", "it's"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=60,
)
DEEP = nested(20_000)
ODD = [DEEP, {"a": DEEP}, 10**5000, [10**5000], [[1, 2], [3]], [[[]]], object(), b"bytes", {1: 2}]

CHECKS: list[Callable[[dict[str, Any]], Any]] = [
    *(lambda data, kind=kind: untrusted.get(data, "key", kind, "a[1]") for kind in KINDS),
    lambda data: untrusted.integer(data, "key", 2, 7),
    lambda data: untrusted.integers(data, "key"),
    lambda data: untrusted.one_of(data, "key", ("yes", "no"), "a"),
    lambda data: untrusted.table(data, "key", (2, 3), 0, 9),
    lambda data: untrusted.table(data, "key", (0,), 0, 9),
]


def short(text: str, around: int = 100) -> bool:
    """Whether a text can be shown anywhere; ``around`` is the room for our own words."""
    return text.isascii() and text.isprintable() and len(text) <= LONGEST_SHOWN + around


def accepted_or_refused(check: Callable[[], Any]) -> Any:
    """What a check returns; None when it refuses, which it may do in one way only."""
    try:
        return check()
    except DataError as error:
        assert short(str(error)), str(error)
        return None


@given(values, st.sampled_from(CHECKS))
def test_any_value_under_any_check_is_returned_or_refused_in_a_short_text(value, check):
    result = accepted_or_refused(lambda: check({"key": value}))
    if result is not None:
        assert np.array_equal(result, np.array(value)) or result is value


@pytest.mark.parametrize("check", CHECKS)
def test_values_that_no_json_has_are_refused_too_and_a_missing_key_is_named(check):
    for value in ODD:
        accepted_or_refused(lambda value=value: check({"key": value}))
    with pytest.raises(DataError, match=r"^(a\[1\]\.|a\.)?key is missing$"):
        check({"other": 1})


@given(st.dictionaries(st.text(), values, max_size=3))
def test_an_unknown_key_is_named_in_a_short_text_with_the_known_ones(data):
    accepted_or_refused(lambda: untrusted.only(data, ("a", "b"), "where"))
    untrusted.only(data, data)
    untrusted.only({"a": 1, "b": 2}, iter("ab"))
    with pytest.raises(DataError, match=r"^setup: unknown key 'c'; known are a, b$"):
        untrusted.only({"a": 1, "c": 2}, iter("ab"), "setup")


def test_each_value_is_of_its_json_types_only():
    for value, kinds in (
        (True, {bool}),
        (1, {int, float}),
        (1.0, {float}),
        ("1", {str}),
        ([], {list}),
        ({}, {dict}),
        (10**400, {int}),  # more than any float
        *((value, set()) for value in (None, math.nan, -math.inf, np.int64(1), (1,))),
    ):
        assert {kind for kind in KINDS if untrusted.is_a(value, kind)} == kinds


def test_errors_name_the_place_what_was_expected_and_what_was_found():
    lists = [[1, 2], [3, 4]]
    data = {"a": 9, "b": "maybe", "c": lists, "d": [1, "2"]}
    for check, text in (
        (lambda: untrusted.get(data, "a", str), "a must be a string, got 9"),
        (lambda: untrusted.get(data, "b", dict, "x[0]"), "x[0].b must be an object, got 'maybe'"),
        (lambda: untrusted.integer(data, "a", 0, 8), "a must be from 0 to 8, got 9"),
        (lambda: untrusted.one_of(data, "b", ["yes"], "x"), "x.b must be one of yes, got 'maybe'"),
        (lambda: untrusted.table(data, "c", (2,), 0, 4), f"c must be 2 whole numbers, got {lists}"),
        (lambda: untrusted.table(data, "c", (2, 2), 0, 3), f"c must be from 0 to 3, got {lists}"),
        (lambda: untrusted.integers(data, "d"), "d[1] must be a whole number, got '2'"),
    ):
        with pytest.raises(DataError) as caught:
            check()
        assert str(caught.value) == text


@given(values)
def test_any_value_is_shown_short_and_in_printable_ascii(value):
    assert short(untrusted.shown(value), around=len(" ..."))


@given(st.text(), st.integers(0, 40))
def test_a_text_is_cut_to_its_length_and_kept_when_it_is_plain(text, longest):
    result = untrusted.cut(text, longest)
    assert result.isascii() and result.isprintable()
    assert len(result) <= longest or (result.endswith(" ...") and len(result) == longest + 4)
    if text.isascii() and text.isprintable() and len(text) <= longest:
        assert result == text


@given(values, st.binary() | st.text())
def test_json_is_read_back_unless_it_holds_nan_and_other_data_refused_in_a_short_text(value, data):
    text = json.dumps(value)
    again = accepted_or_refused(lambda: untrusted.parse_json(text))
    if "NaN" not in text and "Infinity" not in text:
        assert again == value
    accepted_or_refused(lambda: untrusted.parse_json(data))


def test_what_is_not_json_is_refused_with_the_place():
    for data, text in (
        (b"\xff{}", "not UTF-8: byte 1"),
        ("{", "not JSON: Expecting property name enclosed in double quotes, column 2"),
        ("{\n  nope}", "not JSON: Expecting property name enclosed in double quotes, line 2, "),
        ("[NaN]", "not JSON: NaN is not a number"),
        ("[-Infinity]", "not JSON: -Infinity is not a number"),
        ("[1e999]", "not JSON: 1e999 is beyond every float"),
        ('{"a": -1.5E+400}', "not JSON: -1.5E+400 is beyond every float"),
        ("9" * 400 + ".0", "not JSON: 999"),
        ("[" * 100_000, "not JSON: nested too deeply"),
        ("9" * 5000, "not JSON: Exceeds the limit"),
    ):
        with pytest.raises(DataError) as caught:
            untrusted.parse_json(data)
        assert str(caught.value).startswith(text)


@pytest.mark.parametrize("folder", ["carolus_env_mine", "carolus_env"])
def test_an_error_in_a_folder_beside_the_package_names_the_place_there(folder):
    file = Path(untrusted.__file__).parent.parent.with_name(folder) / "bot.py"
    names: dict[str, Any] = {}
    exec(compile("def act(): raise KeyError('lost')", file, "exec"), names)
    try:
        names["act"]()
    except KeyError as error:
        place = "bot.py, line 1" if folder != "carolus_env" else Path(__file__).name
        assert place in untrusted.message(error)
