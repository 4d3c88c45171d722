"""Texts on the page: truncate, make every character visible, and embed as JSON."""

import json
import re
from typing import Any

NAME = 80  # characters shown of a name or keyword
SENTENCE = 500  # of a note
LINE_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
RETURN = " \u23ce "  # shown for a line break

# Control characters, and directional embeddings, overrides and isolates, which can make a text read
# as another one. The marks U+200E, U+200F and U+061C are common in Arabic and Hebrew and stay. A
# lone surrogate cannot be encoded as UTF-8.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
STAND_INS = {
    code: f"\u27e6U+{code:04X}\u27e7"
    for code in (*range(0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
STAND_INS |= {0x09: " "} | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def shown(text: str, limit: int) -> str:
    """Return about `limit` characters of `text` at most, with invisible ones made visible."""
    cut = text[:limit].rstrip() + "\u2026" if len(text) > limit else text
    lined = LINE_BREAK.sub(RETURN, cut)
    # Most texts have no such characters, and searching is much faster than translating.
    return lined.translate(STAND_INS) if UNSEEN.search(lined) else lined


def embedded(value: Any) -> str:
    """Return `value` as JSON that is safe inside a script element.

    Characters with a meaning in HTML are escaped, so that no text can close the element or open a
    comment.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def embedded_size(value: Any) -> int:
    """Return the size of `value` in the page, in bytes."""
    return len(embedded(value).encode("utf-8"))
