"""Files and folders: written whole or not at all, read and checked."""

from newfound.files.atomic import write_alone, write_atomically, write_folder
from newfound.files.json_files import (
    check_fields,
    check_items,
    parse_json,
    read_json,
    without_nan,
    write_json,
    write_text,
)
from newfound.files.leftovers import is_beside, is_free
from newfound.files.manifest import CheckedFolder, read_steadily, write_manifest
from newfound.files.reading import open_regular, read_regular

__all__ = [
    "CheckedFolder",
    "check_fields",
    "check_items",
    "is_beside",
    "is_free",
    "open_regular",
    "parse_json",
    "read_json",
    "read_regular",
    "read_steadily",
    "without_nan",
    "write_alone",
    "write_atomically",
    "write_folder",
    "write_json",
    "write_manifest",
    "write_text",
]
