"""Combine data, styles and scripts into one HTML file that loads nothing else."""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from newfound.report.shown import embedded

# Concatenated in this order; the last one starts the page.
SCRIPTS = (
    "dom.js",
    "theme.js",
    "overview.js",
    "detail.js",
    "table.js",
    "tree.js",
    "narrowing.js",
    "map.js",
    "labels.js",
    "panel.js",
    "textlist.js",
    "charts.js",
    "matching.js",
    "report.js",
)


def page(data: dict[str, Any]) -> str:
    """Return the whole page.

    The content security policy allows only this script and this style, by their hashes, and no
    connections. Even a text that got into the markup could neither run nor send anything.
    """
    script = '"use strict";\n(() => {\n' + "\n".join(map(_piece, SCRIPTS)) + "})();\n"
    style = _piece("report.css")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {"policy": policy, "style": style, "script": script, "data": embedded(data)}
    # One pass, so that placeholders inside the inserted parts are not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _piece("report.html"))


def _piece(name: str) -> str:
    text = files("newfound.report").joinpath(name).read_text(encoding="utf-8")
    # A checkout may convert line ends, but browsers hash the text with \n.
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
