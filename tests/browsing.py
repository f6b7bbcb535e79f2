"""Headless Chromium, driven by its DevTools protocol over one websocket: pages as people see them."""

import base64
import json
import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-port=0 "
         "--autoplay-policy=no-user-gesture-required")  # fmt: skip
WIDTHS = {"desk": (1280, 900, 1), "phone": (390, 844, 2)}  # width, height, pixels a pixel


def program() -> str:
    """Chromium's; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium found (Debian: apt-get install chromium)")
    return found


class Browser:
    """One Chromium with one page; ``said`` collects what the page writes to its console, errors included."""

    def __init__(self, folder: Path, *flags: str):
        from websockets.sync.client import connect

        command = [program(), *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", *flags, "about:blank"]
        self.errors = open(folder / "chromium.log", "w+")  # noqa: SIM115 (open to the end)
        self.process = subprocess.Popen(command, stderr=self.errors, stdout=subprocess.DEVNULL)
        self.number, self.said, self.session = 0, [], None
        self.held = ExitStack()
        address = self._address(folder / "chromium.log")
        self.socket = self.held.enter_context(connect(address, max_size=None, proxy=None))
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _address(self, log: Path) -> str:
        for _ in range(600):
            if found := re.search(r"ws://\S+", log.read_text()):
                return found[0]
            assert self.process.poll() is None, log.read_text()
            time.sleep(0.1)
        raise AssertionError(f"Chromium does not answer: {log.read_text()}")

    def call(self, method: str, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        self.socket.send(json.dumps(message | ({"sessionId": self.session} if self.session else {})))
        while True:
            answer = json.loads(self.socket.recv(timeout=120))
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict) -> None:
        method, told = event.get("method"), event.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(each.get("value", each.get("description"))) for each in told["args"]))
        elif method == "Runtime.exceptionThrown":
            self.said.append(str(told["exceptionDetails"].get("exception", {}).get("description", told)))
        elif method == "Log.entryAdded":
            self.said.append(f"{told['entry']['text']} {told['entry'].get('url', '')}".strip())

    def look(self, width: str, dark: bool = False) -> None:
        """As a desk's or a phone's screen."""
        wide, high, dense = WIDTHS[width]
        self.call("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=dense,
                  mobile=width == "phone")  # fmt: skip
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str):
        """The value of a JavaScript expression, awaited."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = 90):
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if value := self.run(script):
                return value
            time.sleep(0.1)
        raise AssertionError(f"never true: {script}; the page says {self.said}, {self.run('document.body.innerText')}")

    def press(self, key: str) -> None:
        text = " " if key == "Space" else key if len(key) == 1 else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=" " if key == "Space" else key, code=key,
                      text=text if kind == "keyDown" else "")  # fmt: skip

    def picture(self, path: Path) -> None:
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def overflow(self) -> list[str]:
        """What sticks out of the page to the right, and is not in a box of its own that scrolls."""
        return self.run("""[...document.querySelectorAll('body *')].filter((each) => !each.closest('.scroll, pre, svg')
            && each.getBoundingClientRect().right > document.documentElement.clientWidth + 1
            && getComputedStyle(each).position !== 'absolute').map((each) => each.outerHTML.slice(0, 90)).concat(
            document.documentElement.scrollWidth > document.documentElement.clientWidth ? ['the page itself'] : [])""")

    def close(self) -> None:
        self.held.close()
        self.process.terminate()
        self.process.wait(30)
        self.errors.close()
