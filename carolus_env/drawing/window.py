"""A window that shows frames, made with pygame (extra ``render``)."""

from __future__ import annotations

import os
import sys
import time
import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carolus_env.drawing.raster import extra

_UNSEEN: Final = ("dummy", "offscreen")  # SDL drivers without a visible window


class Window:
    """A window that opens with its first frame.

    pygame has one window a process. Several objects share it, and each opens it again when it finds
    it closed or in another size. Objects can be copied and pickled.

    Without a display (a server, a container) everything works unseen and without delays, and a
    warning is given.

    Args:
        caption: title of the window.
    """

    def __init__(self, caption: str) -> None:
        self._caption = caption
        self._opened = False
        self._dismissed = False
        self._shown_at = 0.0

    def show(self, pixels: npt.NDArray[np.uint8], fps: float | None = None) -> None:
        """Show a frame.

        When the user closes the window, it stays closed until `close` is called.

        Args:
            pixels: ``(height, width, 3)`` uint8.
            fps: most frames a second; waits until then. None: does not wait.

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
        events = pygame.event.get()  # empties the queue, which would fill up
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
        """Close the window if it is open; the next frame opens it again."""
        if self._opened:
            extra("pygame").display.quit()
        self._opened = self._dismissed = False


def _start(pygame: Any) -> None:
    """Find a display; on Linux without one, use SDL's dummy driver."""
    if os.environ.get("SDL_VIDEODRIVER"):  # the user has chosen
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
            "there is no display: render mode 'human' draws, but no window can be seen",
            stacklevel=2,
        )
