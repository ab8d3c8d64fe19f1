"""Commands that the pages show: every command line of README, docs, notebooks and help texts."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = ("*.md", "agents/*.md", "docs/*.md", "docs/notebooks/*.py")
SCRIPTS = (
    "*.py",
    "agents/*.py",
    "benchmarks/*.py",
    "docs/*.py",
    "examples/*.py",
    "carolus_env/**/*.py",
)
_WORD = r"(?:python3?|carolus|make|pip)"
_LINE = re.compile(rf"(?:\$ )?({_WORD} .*?)(?: +# .*)?$")


def commands() -> dict[str, list[str]]:
    """Return each command line that is shown, and the pages that show it."""
    shown: dict[str, list[str]] = {}
    for kinds, read in ((PAGES, _of_page), (SCRIPTS, _of_script)):
        for path in sorted(path for kind in kinds for path in ROOT.glob(kind)):
            for command in read(path):
                shown.setdefault(command, []).append(str(path.relative_to(ROOT)))
    return shown


def heads(command: str) -> list[str]:
    """Return the heads of the tables that pages show as a command's output, with single spaces."""
    found = []
    for path in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))):
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
        for (_, first), (kind, output) in pairwise(blocks):
            if command in first.splitlines() and not kind and not [*_commands(output.splitlines())]:
                lines = [" ".join(line.split()) for line in output.splitlines()]
                words = [re.sub(r"\[?95 %\]?", "", line) for line in lines]
                found += [line for line, text in zip(lines, words, strict=True) if _is_head(text)]
    return found


def _is_head(text: str) -> bool:
    return len(text.split()) > 2 and not re.search(r"\d", text)


def _of_page(path: Path) -> Iterator[str]:
    """Yield the commands in code blocks and in inline code."""
    text = path.read_text()
    if path.suffix == ".py":  # a notebook, whose text is in comments
        text = re.sub(r"^# ?", "", text, flags=re.MULTILINE)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if not kind for line in block.splitlines()]
    lines += re.findall(r"^ {4,}(.*)$", text, re.MULTILINE)
    lines += [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    yield from _commands(lines)


def _of_script(path: Path) -> Iterator[str]:
    """Yield the commands in a module's docstring and other long texts, the help of commands."""
    values = (getattr(node, "value", None) for node in ast.parse(path.read_text()).body)
    texts = [value.value for value in values if isinstance(value, ast.Constant)]
    text = "\n".join(text for text in texts if isinstance(text, str) and "\n" in text)
    lines = re.findall(r"^(?: {2,}|\$ )(.*)$", text, re.MULTILINE)
    lines += re.findall(rf"(?:^|``?)({_WORD} [^`\n]+?)(?:``?|$)", text, re.MULTILINE)
    yield from _commands(lines)


def _commands(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for part in line.split(" && "):
            if (found := _LINE.match(part)) and not _is_name(found[1]):
                yield found[1].strip()


def _is_name(command: str) -> bool:
    """Return whether it is the name of a command, such as ``carolus play``, or prose."""
    return bool(
        re.fullmatch(r"carolus [a-z]+|python -m carolus_env|make|carolus COMMAND.*", command)
    )
