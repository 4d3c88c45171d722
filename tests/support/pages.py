"""Use a page of the report or the review in a browser: open, click, type, wait."""

import json
from pathlib import Path
from typing import Any

from support.browser import Browser


def opened(browser: Browser, path: Path, width: int = 1280, phone: bool = False) -> Browser:
    browser.size(width, 844 if phone else 900, phone)
    browser.prefer("light")
    browser.open(path)
    browser.run("document.documentElement.style.scrollBehavior = 'auto'")
    return browser


def data_of(page: Browser) -> Any:
    return json.loads(page.run("document.getElementById('data').textContent"))


def press(page: Browser, selector: str) -> None:
    """Click the middle of an element with the mouse."""
    x, y = page.run(
        f"(() => {{ const one = document.querySelector({json.dumps(selector)});"
        "one.scrollIntoView({block: 'center'}); const box = one.getBoundingClientRect();"
        "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    )
    page.click(x, y)


def frame(page: Browser) -> None:
    """Wait until what was asked for is drawn."""
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def write_in(page: Browser, selector: str, text: str) -> None:
    page.run(f"document.querySelector({json.dumps(selector)}).focus()")
    page.type(text)
