"""Combine data, styles and scripts into one HTML file that loads nothing else."""

import base64
import hashlib
import re
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Extension:
    """What another page adds to the report: code and markup of ours, never texts of users."""

    script: str = ""  # after the report's own
    style: str = ""
    bar: str = ""  # markup under the header
    connect: str = "'none'"  # where the page may send requests to, in its policy


def page(data: dict[str, Any], extension: Extension | None = None) -> str:
    """Return the whole page.

    The content security policy allows only this script and this style, by their hashes, and no
    connections. Even a text that got into the markup could neither run nor send anything.
    """
    more = extension or Extension()
    pieces = [*map(read_piece, SCRIPTS), more.script]
    script = '"use strict";\n(() => {\n' + "\n".join(pieces) + "})();\n"
    style = read_piece("report.css") + more.style
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        f"connect-src {more.connect}; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "policy": policy,
        "style": style,
        "script": script,
        "data": embedded(data),
        "bar": more.bar,
    }
    # One pass, so that placeholders inside the inserted parts are not replaced.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], read_piece("report.html"))


def read_piece(name: str, package: str = "newfound.report") -> str:
    """Return a file of the package: a script, a style or markup."""
    text = files(package).joinpath("static", name).read_text(encoding="utf-8")
    # A checkout may convert line ends, but browsers hash the text with \n.
    return text.replace("\r\n", "\n")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
