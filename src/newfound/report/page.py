"""Put data, styles and scripts into one HTML file that can reach nothing outside itself."""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from newfound.report.shown import embedded

# In this order they make one script; the last one starts the page.
SCRIPTS = (
    "dom.js",
    "theme.js",
    "overview.js",
    "detail.js",
    "table.js",
    "map.js",
    "panel.js",
    "charts.js",
    "matching.js",
    "report.js",
)


def page(data: dict[str, Any]) -> str:
    """Return the whole page.

    The policy allows exactly this script and this style, by their hashes, and no connection, so
    that even a text that found a way into the markup could neither run nor call home.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(map(_piece, SCRIPTS)) + "})();\n"
    style = _piece("report.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": embedded(data)}
    # One pass: what is put in is not searched for further places.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _piece("report.html"))


def _piece(name: str) -> str:
    text = files("newfound.report").joinpath(name).read_text(encoding="utf-8")
    # A checkout may bring its own line ends; the hash is of what a browser sees.
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
