"""Browsers of three engines, driven alike: Chromium by Playwright, Firefox by its Marionette, and
WebKitGTK by WebKitWebDriver, on a screen of Xvfb where there is no other."""

import base64
import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

KEYS = {"Enter": "\ue007", "ArrowRight": "\ue014", "End": "\ue010"}
STROKES = ("keyDown", "keyUp")
SECONDS = 60  # to start, and to wait
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
MINI_BROWSER = next(Path("/usr").glob("lib*/**/webkit2gtk-4.1/MiniBrowser"), None)


def until(ready: Any, what: str) -> Any:
    """Wait for something true, and return it; errors on the way are those of a page that goes."""
    last, failed = time.monotonic() + SECONDS, None
    while time.monotonic() < last:
        try:
            if found := ready():
                return found
        except Exception as error:
            failed = error
        time.sleep(0.05)
    raise TimeoutError(f"no {what} within {SECONDS} s") from failed


class Tab:
    """A tab driven by WebDriver's commands; ``send(name, data, *path)`` sends one."""

    def __init__(self, send: Any) -> None:
        self._send = send

    def run(self, function: str, *args: Any) -> Any:
        """Call a function of JavaScript."""
        data = {"script": f"return ({function})(...arguments)", "args": args}
        return self._send("ExecuteScript", data, "execute", "sync")

    def goto(self, address: str) -> None:
        self.leave("(to) => location.assign(to)", address)

    def reload(self) -> None:
        self.leave("() => location.reload()")

    def back(self) -> None:
        self.leave("() => history.back()")

    def leave(self, function: str, *args: Any) -> None:
        """Call a function that leads to another page, and wait for that."""
        self.run("() => { document.isLeft = true; }")
        self.run(f"(...args) => {{ setTimeout(() => ({function})(...args)); }}", *args)
        until(lambda: self.run(THERE), "other page")

    def click(self, selector: str) -> None:
        """Click the middle of the first element that fits and is not covered."""
        x, y = until(lambda: self.run(UNCOVERED, selector), selector)
        moves = [{"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0}]
        self._act("pointer", *moves, {"type": "pointerUp", "button": 0})

    def press(self, key: str) -> None:
        self._act("key", *({"type": kind, "value": KEYS.get(key, key)} for kind in STROKES))

    def _act(self, kind: str, *actions: Any) -> None:
        device = {"type": kind, "id": kind, "actions": actions}
        self._send("PerformActions", {"actions": [device]}, "actions")

    def resize(self, width: int, height: int) -> None:
        """Give the page this size."""
        for _ in range(2):  # the first time the browser may change what is around the page
            around = self.run("() => [outerWidth - innerWidth, outerHeight - innerHeight]")
            size = {"width": width + around[0], "height": height + around[1]}
            self._send("SetWindowRect", size, "window", "rect")
        until(lambda: self.run("() => [innerWidth, innerHeight]") == [width, height], "such size")

    def picture(self) -> bytes:
        """Return a PNG of what is in sight."""
        return base64.b64decode(self._send("TakeScreenshot", None, "screenshot"))


THERE = "() => !document.isLeft && document.readyState === 'complete'"
UNCOVERED = """(selector) => {
    for (const each of document.querySelectorAll(selector)) {
        each.scrollIntoView({ block: "center", inline: "center" });
        const box = each.getBoundingClientRect();
        const middle = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
        const hit = document.elementFromPoint(...middle);
        if (box.width && each.contains(hit)) return middle.map(Math.round);
    }
    return null;
}"""


class ChromiumTab(Tab):
    """The same by Playwright."""

    def __init__(self, tab: Any) -> None:
        self._tab, self.press, self.picture = tab, tab.keyboard.press, tab.screenshot

    def run(self, function: str, *args: Any) -> Any:
        return self._tab.evaluate(f"(args) => ({function})(...args)", list(args))

    def click(self, selector: str) -> None:
        self._tab.mouse.click(*until(lambda: self.run(UNCOVERED, selector), selector))

    def resize(self, width: int, height: int) -> None:
        self._tab.set_viewport_size({"width": width, "height": height})


class WebKitTab(Tab):
    """The same with a frame in ``host`` for the sizes of phones: no window here is as narrow."""

    def __init__(self, send: Any, host: str) -> None:
        super().__init__(send)
        self._host = host

    def resize(self, width: int, height: int) -> None:
        self._send("", {"url": self._host}, "url")
        if width >= NARROWEST:
            return super().resize(width, height)
        frame = self.run(FRAME, width, height)
        self._send("", {"id": frame}, "frame")
        return None


NARROWEST = 500
FRAME = """(width, height) => {
    const frame = document.createElement("iframe");
    frame.width = width;
    frame.height = height;
    frame.style.border = document.body.style.margin = 0; // points on it are the window's
    document.body.replaceChildren(frame);
    return frame;
}"""


@contextmanager
def running(*command: str, **more: Any) -> Iterator[Any]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, **{**quiet, **more})
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@contextmanager
def chromium() -> Iterator[Tab]:
    from playwright.sync_api import sync_playwright

    usual = ["--disable-back-forward-cache"]  # as a user's browser, which has it
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, ignore_default_args=usual)
        yield ChromiumTab(browser.new_page())
        browser.close()


@contextmanager
def firefox() -> Iterator[Tab]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        style = "toolkit.legacyUserProfileCustomizations.stylesheets"
        settings = f'user_pref("marionette.port", 0);\nuser_pref("{style}", true);\n'
        (Path(profile) / "user.js").write_text(settings)
        (Path(profile) / "chrome").mkdir()  # a window may be as narrow as a phone's
        narrow = ":root { min-width: 0 !important; min-height: 0 !important; }"
        (Path(profile) / "chrome/userChrome.css").write_text(narrow)
        port = Path(profile) / "MarionetteActivePort"
        command = (FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile)
        with running(*command), ExitStack() as stack:
            number = int(until(lambda: port.exists() and port.read_text(), "Firefox"))
            stream = socket.create_connection(("127.0.0.1", number), timeout=SECONDS)
            lines = stack.enter_context(stack.enter_context(stream).makefile("rwb"))

            def received() -> Any:
                size = b""
                while not size.endswith(b":"):
                    size += lines.read(1)
                return json.loads(lines.read(int(size[:-1])))

            def send(name: str, data: Any, *_: str) -> Any:
                text = json.dumps([0, 1, f"WebDriver:{name}", data or {}]).encode()
                lines.write(b"%d:%s" % (len(text), text))
                lines.flush()
                _, _, error, result = received()
                if error is not None:
                    raise RuntimeError(error)
                return result.get("value") if isinstance(result, dict) else result

            received()  # its greeting
            send("NewSession", {})
            yield Tab(send)


@contextmanager
def webkit() -> Iterator[Tab]:
    with ExitStack() as stack:
        environment = dict(os.environ)
        if "DISPLAY" not in environment and "WAYLAND_DISPLAY" not in environment:
            get, put = os.pipe()
            screen = ("-screen", "0", "1600x1200x24", "-nolisten", "tcp")
            display = ("Xvfb", "-displayfd", str(put), *screen)
            stack.enter_context(running(*display, pass_fds=[put]))
            environment["DISPLAY"] = ":" + os.read(get, 16).decode().strip()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        stack.enter_context(running("WebKitWebDriver", f"--port={port}", env=environment))
        until(lambda: socket.create_connection(("127.0.0.1", port)).close() or True, "WebKit")
        session = []

        def send(_: str, data: Any, *path: str) -> Any:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
            with contextlib.closing(connection):
                method = "POST" if data is not None else "GET" if path else "DELETE"
                body = None if data is None else json.dumps(data)
                connection.request(method, "/".join(["/session", *session, *path]), body)
                answer = json.loads(connection.getresponse().read())["value"]
            if isinstance(answer, dict) and "error" in answer:
                raise RuntimeError(answer)
            return answer

        options = {"binary": str(MINI_BROWSER), "args": ["--automation"]}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        session.append(send("NewSession", wanted, "")["sessionId"])
        yield WebKitTab(send, f"http://127.0.0.1:{port}/status")
        send("DeleteSession", None)


ENGINES = {  # how each is started, and what is missing here
    "chromium": (chromium, None if CHROMIUM else "Chromium"),
    "firefox": (firefox, None if FIREFOX else "Firefox"),
    "webkit": (
        webkit,
        None
        if MINI_BROWSER and shutil.which("WebKitWebDriver")
        else "WebKitWebDriver with MiniBrowser (webkit2gtk-driver)",
    ),
}
