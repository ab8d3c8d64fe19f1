"""A window that shows frames, by pygame (extra ``render``)."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.raster import extra

_UNSEEN: Final = ("dummy", "offscreen")  # drivers of SDL that show nothing


class Window:
    """A window, opened by its first frame.

    pygame has one window in a process: several of these share it, and each that comes back to find
    it closed, or of another size, opens it anew. There is nothing in here that cannot be copied.

    Without a display (a server, a container) all works the same, but is not seen and not waited
    for; a warning says so.
    """

    def __init__(self, caption: str) -> None:
        self._caption = caption
        self._opened = False
        self._dismissed = False
        self._shown_at = 0.0

    def show(self, pixels: npt.NDArray[np.uint8], fps: float | None = None) -> None:
        """Show a frame.

        Whoever closes the window has seen enough: it stays closed until `close` is called.

        Args:
            pixels: ``(height, width, 3)`` uint8.
            fps: frames a second at most; waits as long as that takes. None: does not wait.

        Raises:
            ImportError: without the extra ``render``, naming it.
        """
        if self._dismissed:
            return
        pygame = extra("pygame")
        surface = self._surface(pygame, (pixels.shape[1], pixels.shape[0]))
        frame = pygame.image.frombuffer(pixels.tobytes(), surface.get_size(), "RGB")
        surface.blit(frame, (0, 0))
        pygame.display.flip()
        events = pygame.event.get()  # all of them: a full queue takes no more
        if any(event.type == pygame.QUIT for event in events):
            self.close()
            self._dismissed = True
            return
        if fps is not None and pygame.display.get_driver() not in _UNSEEN:
            time.sleep(max(0.0, self._shown_at + 1 / fps - time.monotonic()))
        self._shown_at = time.monotonic()

    def _surface(self, pygame: Any, size: tuple[int, int]) -> Any:
        if not pygame.display.get_init():
            _start(pygame)
        surface = pygame.display.get_surface()
        if surface is None or surface.get_size() != size:
            surface = pygame.display.set_mode(size)
            pygame.display.set_caption(self._caption)
        self._opened = True
        return surface

    def close(self) -> None:
        """Close the window, if it is open; another frame would open it again."""
        if self._opened:
            extra("pygame").display.quit()
        self._opened = self._dismissed = False


def _start(pygame: Any) -> None:
    """Find a display; where there is none, on Linux, go on unseen."""
    if os.environ.get("SDL_VIDEODRIVER"):  # somebody knows better
        pygame.display.init()
        return
    if sys.platform == "linux" and not any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))):
        os.environ["SDL_VIDEODRIVER"] = "dummy"
        try:
            pygame.display.init()
        finally:
            del os.environ["SDL_VIDEODRIVER"]
    else:
        pygame.display.init()
    if pygame.display.get_driver() in _UNSEEN:
        warnings.warn(
            "there is no display: the window of render mode 'human' is drawn, but nobody sees it",
            stacklevel=2,
        )
