"""Findings about categories that are too similar to another one, or unlike their labels."""

import numpy as np

from newfound.report.findings.finding import Finding, Item, percent
from newfound.report.findings.shape import parts
from newfound.result import Result
from newfound.wording import plural

OUTLIER = 3.0  # robust standard deviations from the median
OUTLIER_COUNT = 8  # minimum number of categories for a median
FAR_TIMES = 1.5  # times the median distance; less is not reported
UNSURE_GAP = 0.1  # below the median confidence; less is not reported
CLOSE = 0.5  # of the median distance between neighbouring categories
AS_CLOSE = 1.1  # times the distance of the matched pair
MOVED_SHARE = 0.3  # of a category's labelled texts that the model assigns to another one
MOVED_COUNT = 5  # such texts


def same_as_known(result: Result) -> Finding | None:
    """Find novel categories that coincide with a known one, by any of three criteria."""
    known = result.is_known
    if not known.any() or known.all():
        return None
    pairs: dict[tuple[int, int], str] = {}
    for novel, name, text in [*_moved_to_novel(result), *_matched_as_well(result), *_close(result)]:
        pairs.setdefault((novel, name), text)  # the first criterion is the strongest
    if not pairs:
        return None
    return Finding(
        "same",
        "check",
        f"{plural(len({novel for novel, _ in pairs}), 'novel category', 'novel categories')} may "
        "be the same as a known one",
        "A novel category that is very close to a known category may be a part of it.",
        "Compare their typical texts; if the topic is the same, merge the two.",
        tuple(Item(novel, name, text) for (novel, name), text in pairs.items()),
    )


def _moved_to_novel(result: Result) -> list[tuple[int, int, str]]:
    moved = []
    for name, elsewhere, number, total in _moves(result):
        if (
            not result.is_known[elsewhere]
            and number >= MOVED_COUNT
            and number / total >= MOVED_SHARE
        ):
            text = f"the model assigns {number:,} of the {total:,} texts with that label to it"
            moved.append((elsewhere, name, text))
    return moved


def _matched_as_well(result: Result) -> list[tuple[int, int, str]]:
    """Find novel prototypes that are about as close to a labelled prototype as its own match."""
    distances = result.matching
    if distances is None:
        return []
    rows, columns = distances.shape
    found = []
    for row in range(rows):
        own = distances[row, row]
        for column in range(rows, columns):
            if not distances[row, column] <= AS_CLOSE * own:
                continue
            text = (
                f"its distance to your labelled texts is {distances[row, column]:.2f}, "
                f"that of the matched category is {own:.2f}"
            )
            found.append((column, row, text))
    return found


def _close(result: Result) -> list[tuple[int, int, str]]:
    distances = np.array([c.nearest_distance for c in result.categories], dtype=np.float64)
    if np.isfinite(distances).sum() < OUTLIER_COUNT:
        return []
    usual = float(np.nanmedian(distances))
    nearest = [result.position.get(c.nearest or "", -1) for c in result.categories]
    return [
        (
            novel,
            nearest[novel],
            f"their distance is {c.nearest_distance:.2f}; the median distance to the nearest "
            f"category is {usual:.2f}",
        )
        for novel, c in enumerate(result.categories)
        if c.kind == "novel"
        and nearest[novel] >= 0
        and result.categories[nearest[novel]].kind == "known"
        and c.nearest_distance < CLOSE * usual
    ]


def looks_like_two(result: Result) -> Finding | None:
    items = []
    for position in range(len(result.categories)):
        split = parts(result.map_positions[result.assigned == position])
        if split is not None:
            text = f"two separate groups on the map, of {split[0]:,} and {split[1]:,} texts"
            items.append(Item(position, None, text))
    if not items:
        return None
    return Finding(
        "two",
        "check",
        f"{plural(len(items), 'category', 'categories')} may be two in one",
        "The texts of such a category form two separate groups on the map.",
        "Read texts of both groups; if they differ, run again with more categories.",
        tuple(items),
    )


def labels_doubted(result: Result) -> Finding | None:
    items = [
        Item(
            name,
            elsewhere,
            f"the model predicts another category for {number:,} of its {total:,} labelled texts",
        )
        for name, elsewhere, number, total in _moves(result)
        if result.is_known[elsewhere] and number >= MOVED_COUNT and number / total >= MOVED_SHARE
    ]
    if not items:
        return None
    return Finding(
        "doubted",
        "check",
        "The model disagrees with some of your labels",
        "For many texts with one label the model predicts another category.",
        "Read their border texts: the two categories may overlap, or some labels may be wrong.",
        tuple(items),
    )


def _moves(result: Result) -> list[tuple[int, int, int, int]]:
    """Return (label, most frequent other prediction, its texts, all texts with the label)."""
    moves = []
    for name in np.flatnonzero(result.is_known):
        answers = result.predicted[result.labelled & (result.assigned == name)]
        others = np.bincount(answers[answers != name], minlength=len(result.categories))
        if others.any():
            most = int(others.argmax())
            moves.append((int(name), most, int(others[most]), len(answers)))
    return moves


def _outliers(values: np.ndarray, sign: int) -> np.ndarray:
    """Return the positions of unusually high (sign 1) or low (sign -1) values."""
    finite = values[np.isfinite(values)]
    if len(finite) < OUTLIER_COUNT:
        return np.array([], dtype=np.int64)
    middle = np.median(finite)
    spread = 1.4826 * np.median(np.abs(finite - middle))
    if spread == 0:
        return np.array([], dtype=np.int64)
    return np.flatnonzero(sign * (values - middle) > OUTLIER * spread)


def far_from_labels(result: Result) -> Finding | None:
    distances = np.array(
        [np.nan if c.distance is None else c.distance for c in result.categories], dtype=np.float64
    )
    far = _outliers(distances, 1)
    usual = float(np.nanmedian(distances)) if len(far) else np.nan
    far = far[distances[far] > FAR_TIMES * usual]
    if not len(far):
        return None
    return Finding(
        "far",
        "check",
        f"{plural(len(far), 'known category', 'known categories')} unlike your labelled texts",
        "Their prototype is far from the texts that you labelled. The category may contain other "
        "topics, or the match may be wrong.",
        "Compare their typical texts with those that you labelled.",
        tuple(
            Item(int(i), None, f"distance {distances[i]:.2f}; the median is {usual:.2f}")
            for i in far
        ),
    )


def unsure_categories(result: Result) -> Finding | None:
    confidence = np.array([c.confidence for c in result.categories], dtype=np.float64)
    low = _outliers(confidence, -1)
    usual = float(np.nanmedian(confidence)) if len(low) else np.nan
    low = low[confidence[low] < usual - UNSURE_GAP]
    if not len(low):
        return None
    return Finding(
        "mixed",
        "check",
        f"The model is less sure of {plural(len(low), 'category', 'categories')} than of the rest",
        "Such a category often has several topics, or shares its topic with a similar category.",
        "Read its border texts first.",
        tuple(
            Item(
                int(i),
                result.position.get(result.categories[i].nearest or ""),
                f"confidence {percent(confidence[i])}; the median is {percent(usual)}",
            )
            for i in low[np.argsort(confidence[low])]
        ),
    )
