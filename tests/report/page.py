# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests ask of a rendered page."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

from PIL import Image

# Colour of a pixel behind an element: the nearest ancestor that is not transparent.
_CONTRASTS = """
const channel = value => { value /= 255; return value <= .03928 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4; };
const parse = colour => colour.match(/[0-9.]+/g).map(Number);
const luminance = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
const ground = element => {
  for (let one = element; one; one = one.parentElement) {
    const colour = parse(getComputedStyle(one).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
  return [255, 255, 255];
};
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  if (!own || !element.checkVisibility() || !element.getClientRects().length) continue;
  const style = getComputedStyle(element);
  const text = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
  const [high, low] = [luminance(text), luminance(ground(element))].sort((a, b) => b - a);
  found.push([element.textContent.trim().slice(0, 40), (high + .05) / (low + .05)]);
}
return found;
"""


class Page:
    """A page in a browser window of a given size."""

    def __init__(self, browser: Any, width: int, height: int):
        self.browser, self.width, self.height = browser, width, height

    def show(self, path: Path) -> None:
        """Load the page as this device would."""
        size = {"width": self.width, "height": self.height, "deviceScaleFactor": 1, "mobile": self.width < 600}
        self._tell("Emulation.setDeviceMetricsOverride", **size)
        self.browser.get(path.as_uri())

    def reload(self) -> None:
        """Load it once more, for settings that count while loading."""
        self.browser.refresh()

    def reset(self) -> None:
        """Back to what the next test expects."""
        self.scripts(True)
        self.media("", "")

    def media(self, medium: str = "", scheme: str = "") -> None:
        """Render for a medium (print) or a colour scheme (light, dark)."""
        features = [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []
        self._tell("Emulation.setEmulatedMedia", media=medium, features=features)

    def scripts(self, allowed: bool) -> None:
        """Let the page run scripts, or not."""
        self._tell("Emulation.setScriptExecutionDisabled", value=not allowed)

    def ask(self, script: str, *arguments: Any) -> Any:
        """The value of a JavaScript function body."""
        return self.browser.execute_script(script, *arguments)

    def open(self, most: int = 1000) -> None:
        """Open so many of the parts that are closed."""
        self.ask(f"document.querySelectorAll('details').forEach((one, at) => {{ if (at < {most}) one.open = true; }})")

    def text(self, selector: str) -> str:
        """What a reader sees of the first element that matches."""
        return self.browser.find_element("css selector", selector).text

    def elements(self, selector: str) -> list:
        """All that match, in document order."""
        return self.browser.find_elements("css selector", selector)

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """Boxes of the elements that match, in pixels of the page."""
        return self.ask(
            f"return [...document.querySelectorAll({selector!r})].filter(one => one.checkVisibility()).map(one => {{"
            "const box = one.getBoundingClientRect();"
            "return {left: box.left + scrollX, right: box.right + scrollX, top: box.top + scrollY,"
            " bottom: box.bottom + scrollY, width: box.width, height: box.height}; });"
        )

    def contrasts(self) -> list[tuple[str, float]]:
        """Every visible text with its contrast to what is behind it."""
        return self.ask(_CONTRASTS)

    def screenshot(self) -> Image.Image:
        """The whole page, also what has to be scrolled to."""
        answer = self._tell("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=self._whole())
        return Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")

    def _whole(self) -> dict[str, float]:
        size = self._tell("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def _tell(self, command: str, **arguments: Any) -> Any:
        return self.browser.execute_cdp_cmd(command, arguments)
