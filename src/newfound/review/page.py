"""What the review adds to the page of the report."""

from functools import cache

from newfound.report.page import Extension, read_piece

SCRIPTS = ("saving.js", "lasso.js", "bulk.js", "actions.js", "queue.js", "review.js")


@cache
def extension() -> Extension:
    """Return the scripts, the style and the bar of the review."""
    return Extension(
        script="\n".join(read_piece(name, "newfound.review") for name in SCRIPTS),
        style=read_piece("review.css", "newfound.review"),
        bar=read_piece("bar.html", "newfound.review"),
        connect="'self'",
    )
