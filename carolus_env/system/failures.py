"""Messages about errors in other people's code: what failed, and where in their file."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import Final

_PACKAGE: Final = str(Path(__file__).parent.parent)
_LIBRARY_PATHS: Final = (_PACKAGE, sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), "<")


def message(error: BaseException) -> str:
    """Return the error in a line, with the innermost place in the caller's code that led to it.

    ``"KeyError: 'lost' (my_bot.py, line 12)"``; no place where there is none.
    """
    try:
        reason = str(error)
    except BaseException:  # of a class whose own text fails
        reason = ""
    text = type(error).__name__ + (f": {reason}" if reason else "")
    if isinstance(error, SyntaxError):  # its text says where it is
        return text
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_LIBRARY_PATHS):
            return f"{text} ({Path(frame.filename).name}, line {frame.lineno})"
    return text


class UserError(Exception):
    """An error that the user can correct; the text says how, in a line."""

    def __init__(self, text: str = "", code: int = 2, details: str = "") -> None:
        super().__init__(text)
        self.code = code  # of a command that ends by it
        self.details = details  # further lines, for standard error


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is missing; the text says what needs it, and how to install it."""

    def __init__(self, package: str | None, what: str, extra: str) -> None:
        text = f"{package} is missing; {what} needs the extra {extra!r}: {install(extra)}"
        super().__init__(text, name=package)


def install(extra: str) -> str:
    """Return the command that installs an extra of this package."""
    return f"pip install 'carolus-env[{extra}]' (in a clone: pip install -e '.[{extra}]')"


def full_traceback(error: BaseException) -> str:
    """Return the error as Python prints it, with every line that led to it."""
    return "".join(traceback.format_exception(error))
