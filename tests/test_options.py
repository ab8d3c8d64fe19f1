"""Options: one declaration, which commands, specs, files and errors read."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from carolus_env.bots import ValueOptions, make
from carolus_env.engine.rules import Rules
from carolus_env.learners import read_config
from carolus_env.system.command import HelpShown, parse
from carolus_env.system.options import (
    REQUIRED,
    UserError,
    as_dict,
    check_fields,
    declared,
    group,
    option,
    replaced,
)


@dataclass(frozen=True)
class Some:
    """An option of each kind."""

    size: int = option(REQUIRED, "size", kind=int, among=(2, None))
    names: tuple[str, ...] = option((), "names", positional=True, metavar="NAME")
    rate: float = option(0.5, "rate", above=0, below=1)
    word: str = option("one", "word", among=("one", "two"))
    file: Path | None = option(None, "file", kind=Path)
    each: tuple[str, ...] = option((), "each", repeated=True)
    is_on: bool = option(False, "on")
    rules: Rules = group(Rules, "rules")

    def __post_init__(self) -> None:
        check_fields(self)


def read(words: str) -> Some:
    return parse(Some, words.split(), "python some.py", "About.").options


def test_a_command_line_gives_each_option_its_type_and_says_which_were_given(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    words = "a --size 3 b --rate 1e-2 --each x --each=y --is-on --players 3 --file=~/x"
    some = read(words)
    assert (some.names, some.each, some.is_on) == (("a", "b"), ("x", "y"), True)
    assert (some.size, some.rate, some.word) == (3, 0.01, "one")
    assert (some.file, some.rules) == (Path("/home/me/x"), Rules(3))
    given = parse(Some, ["--size=2", "--rate=0.1"], "some", "").given
    assert given == {"size": 2, "rate": 0.1}
    assert as_dict(some)["players"] == 3 and as_dict(some)["file"] == "/home/me/x"
    assert replaced(some, {"players": 4, "size": 5}).rules == Rules(4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--size"),
        ("--size 1", "--size must be a whole number of at least 2, got 1"),
        ("--size 2.5", "--size must be a whole number of at least 2, got '2.5'"),
        ("--size 2 --rate nan", "--rate must be a number above 0 and below 1, got nan"),
        ("--size 2 --word three", "--word must be one or two, got 'three'"),
        ("--size 2 --players 5", "--players must be a whole number from 2 to 4, got 5"),
        ("--size 2 --siez 3", "unknown argument '--siez'; did you mean --size"),
        ("--size 2 --siz 3", "unknown argument '--siz'; did you mean --size"),
    ],
)
def test_a_wrong_word_is_refused_by_the_option_as_it_is_typed(words, said):
    with pytest.raises(UserError) as refused:
        read(words)
    assert said in str(refused.value)


def test_numbers_of_numpy_are_numbers_and_truth_values_are_none():
    assert ValueOptions(errors=np.float32(0.5)).errors == 0.5
    assert ValueOptions(candidates=np.int8(3)).candidates == 3
    for value in (True, np.True_, "1", None, 10**400, float("inf")):
        with pytest.raises(ValueError, match="errors must be a number from 0"):
            ValueOptions(errors=value)


def test_help_names_and_describes_every_option(capsys):
    with pytest.raises(HelpShown):
        parse(ValueOptions, ["--help"], "some", "")
    shown = " ".join(capsys.readouterr().out.split())
    for name, entry in declared(ValueOptions).items():
        assert entry.about in shown and f"--{name}" in shown


def test_a_field_that_declares_nothing_is_refused():
    @dataclass
    class Plain:
        size: int = 3

    with pytest.raises(TypeError, match="size must be declared by option"):
        declared(Plain)


def test_files_may_begin_with_a_mark_and_paths_with_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "options.toml").write_text('runs = "~/mine"\n', encoding="utf-8-sig")
    assert read_config(Path("~/options.toml")).runs == tmp_path / "mine"
    (tmp_path / "bot.py").write_text("def act(states, generators):\n    pass\n")
    assert make("~/bot.py:act").name == "~/bot.py:act"
    for spec in ("value:~/none", "exe:~/none"):
        with pytest.raises(ValueError, match=r"^[^~]*none"):
            make(spec)
