"""Hooks of the documentation site: pages that lie outside docs/, and links between the two.

The benchmark's tables, CONTRIBUTING.md and CHANGELOG.md stay where a reader of the repository looks
for them, and are pages of the site as well. Links in them are written for the repository; on the
site they are rewritten. A link to a file that is not on the site (a module, say) becomes its path.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md")
PATTERNS = ("benchmarks/*.md", "benchmarks/notes/*.md", "benchmarks/figures/*.*g")
LINK = re.compile(r"(?<!`)(!?)\[([^\]]*)\]\(([^)\s]+)\)")
ABLATION = "<!-- ablation -->"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and figures that lie outside docs/."""
    paths = [ROOT / name for name in OUTSIDE]
    paths += [path for pattern in PATTERNS for path in sorted(ROOT.glob(pattern))]
    for path in paths:
        name = path.relative_to(ROOT).as_posix()
        files.append(File(name, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Rewrite the links of a page, and fill in the ablation table where it is marked."""
    source = Path(page.file.abs_src_path).relative_to(ROOT).as_posix()
    on_site = {
        Path(f.abs_src_path).relative_to(ROOT).as_posix(): f.src_uri
        for f in files
        if f.abs_src_path and Path(f.abs_src_path).is_relative_to(ROOT)
    }
    if ABLATION in markdown:
        table = ablation_table((ROOT / "benchmarks/parts.md").read_text(encoding="utf-8"))
        markdown = markdown.replace(ABLATION, table)
    return rewrite_links(markdown, source, on_site)


def rewrite_links(markdown: str, source: str, on_site: dict[str, str]) -> str:
    """Turn the relative links of the file `source` into links between pages of the site.

    `on_site` maps the path of a file in the repository to its path on the site.
    """
    here = posixpath.dirname(on_site[source])

    def rewritten(match: re.Match[str]) -> str:
        mark, text, link = match.groups()
        target, hash_sign, anchor = link.partition("#")
        if not target or ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path == "README.md":
            path = "docs/index.md"
        if path not in on_site:
            if (ROOT / path).exists():
                return f"`{path}`" if text.strip("`") == target else f"{text} (`{path}`)"
            return match[0]
        return f"{mark}[{text}]({posixpath.relpath(on_site[path], here or '.')}{hash_sign}{anchor})"

    # Code blocks are left alone: what looks like a link there is none.
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else LINK.sub(rewritten, part) for part in parts)


def ablation_table(
    parts: str, effort: str = "fast", scores: tuple[str, ...] = ("All", "Novel")
) -> str:
    """Pivot benchmarks/parts.md: one row per part of the method, one column per data set and score.

    Only rows of one effort are taken, measured in the method as it is.
    """
    lines = [line for line in parts.splitlines() if line.startswith("|")]
    header = _cells(lines[0])
    rows = [dict(zip(header, _cells(line), strict=True)) for line in lines[2:]]
    rows = [row for row in rows if (row["effort"], row["measured in"]) == (effort, "current")]
    data_sets = list(dict.fromkeys(row["data set"] for row in rows))
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        gains = found.setdefault(row["part"], {})
        gains |= {f"{row['data set']}, {score}": row[score] for score in scores}
    columns = [f"{data_set}, {score}" for data_set in data_sets for score in scores]
    table = [["without", *columns], [":--", *["--:"] * len(columns)]]
    table += [
        [part, *(gains.get(column, "") for column in columns)] for part, gains in found.items()
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in table)


def _cells(line: str) -> list[str]:
    """Return the cells of a row of a Markdown table."""
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
