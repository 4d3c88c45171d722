"""The numbers that the paper (An et al., AAAI 2023) and the toolkit TEXTOIR report."""

# (known, novel, labelled, unlabelled, test); for CLINC the paper prints 113 known categories.
TABLE_1: dict[str, tuple[int, int, int, int, int]] = {
    "banking": (58, 19, 673, 8330, 3080),
    "stackoverflow": (15, 5, 1350, 16650, 1000),
    "clinc": (113, 37, 1344, 16656, 2250),
}

Accuracies = tuple[float, float, float]  # All, Known, Novel in percent

# By the method's name in result lines: its name in the paper.
NAMES: dict[str, str] = {
    "deepcluster": "DeepCluster",
    "dcn": "DCN",
    "dec": "DEC",
    "bert": "BERT (k-means)",
    "km-glove": "KM-GloVe",
    "ag-glove": "AG-GloVe",
    "sae": "SAE",
    "semi-dc": "Semi-DC",
    "cdac+": "CDAC+",
    "self-labeling": "Self-Labeling",
    "dtc": "DTC",
    "dac": "DAC",
    "semi-km": "Semi-KM",
    "laskm": "LASKM",
    "dpn": "DPN",
}

# All accuracy in the toolkit TEXTOIR with BERT (known ratio 0.75, or 0 for methods without labels).
# It splits StackOverflow differently (12,000 / 2,000 / 6,000 texts).
TEXTOIR: dict[str, dict[str, float]] = {
    method: dict(zip(("banking", "stackoverflow", "clinc"), values, strict=True))
    for method, values in {
        "dcn": (38.59, 59.48, 48.69),
        "dec": (38.60, 59.49, 48.77),
        "km-glove": (28.62, 23.72, 45.76),
        "ag-glove": (31.62, 28.50, 44.12),
        "sae": (37.07, 49.11, 47.15),
        "cdac+": (51.07, 64.57, 67.77),
        "dtc": (57.16, 71.04, 77.65),
        "dac": (64.63, 77.97, 86.79),
        "laskm": (56.94, 65.20, 76.82),
    }.items()
}

TABLE_2: dict[str, dict[str, Accuracies]] = {
    "deepcluster": {
        "banking": (13.95, 13.94, 13.99),
        "stackoverflow": (17.37, 18.22, 14.80),
        "clinc": (26.92, 27.34, 25.67),
    },
    "dcn": {
        "banking": (17.85, 18.94, 14.35),
        "stackoverflow": (29.10, 28.94, 29.51),
        "clinc": (29.64, 30.00, 28.45),
    },
    "dec": {
        "banking": (19.30, 20.36, 15.84),
        "stackoverflow": (19.30, 20.36, 15.84),
        "clinc": (19.99, 20.18, 19.40),
    },
    "bert": {
        "banking": (21.29, 21.48, 20.70),
        "stackoverflow": (16.80, 16.67, 17.20),
        "clinc": (34.52, 34.98, 33.16),
    },
    "km-glove": {
        "banking": (29.18, 29.11, 29.39),
        "stackoverflow": (28.40, 28.60, 28.05),
        "clinc": (51.64, 51.74, 51.50),
    },
    "ag-glove": {
        "banking": (30.09, 29.69, 31.29),
        "stackoverflow": (29.23, 28.49, 31.56),
        "clinc": (44.70, 45.17, 43.20),
    },
    "sae": {
        "banking": (38.05, 38.29, 37.27),
        "stackoverflow": (60.33, 57.36, 69.02),
        "clinc": (46.59, 47.35, 44.24),
    },
    "semi-dc": {
        "banking": (50.73, 53.37, 42.63),
        "stackoverflow": (64.90, 66.13, 61.20),
        "clinc": (74.52, 75.60, 71.34),
    },
    "cdac+": {
        "banking": (53.09, 55.42, 46.01),
        "stackoverflow": (76.67, 77.51, 74.13),
        "clinc": (69.75, 70.08, 68.77),
    },
    "self-labeling": {
        "banking": (56.19, 61.64, 39.56),
        "stackoverflow": (71.03, 78.53, 48.53),
        "clinc": (72.69, 80.06, 49.65),
    },
    "dtc": {
        "banking": (56.56, 59.98, 46.10),
        "stackoverflow": (70.50, 80.93, 51.87),
        "clinc": (76.42, 82.34, 58.95),
    },
    "dac": {
        "banking": (63.63, 69.60, 45.44),
        "stackoverflow": (70.77, 76.13, 54.67),
        "clinc": (84.42, 89.10, 70.59),
    },
    "semi-km": {
        "banking": (66.23, 73.62, 43.68),
        "stackoverflow": (73.13, 81.02, 49.47),
        "clinc": (81.42, 89.03, 59.01),
    },
    "laskm": {
        "banking": (67.55, 75.16, 44.34),
        "stackoverflow": (74.83, 82.00, 53.33),
        "clinc": (79.26, 89.64, 48.66),
    },
    "dpn": {
        "banking": (72.96, 80.93, 48.60),
        "stackoverflow": (84.23, 85.29, 81.07),
        "clinc": (89.06, 92.97, 77.54),
    },
}

# The ablations on StackOverflow: the method's name in result lines, what is left out, the accuracy.
TABLE_3: dict[str, tuple[str, Accuracies]] = {
    "dpn": ("nothing: the full method", (84.23, 85.29, 81.07)),
    "dpn-no-ce": ("cross-entropy (Eq. 9)", (83.83, 85.02, 80.26)),
    "dpn-no-ema": ("moving average (Eq. 11)", (82.50, 83.87, 78.40)),
    "dpn-no-decoupling": ("decoupling and transfer (Eq. 8)", (78.77, 78.53, 79.47)),
    "dpn-hard-assignment": ("soft assignment (Eq. 4 instead)", (75.10, 75.33, 74.40)),
    "dpn-uniform-weights": ("semantic weights", (35.70, 33.73, 41.60)),
}

# Estimated number of categories.
TABLE_4: dict[str, dict[str, int]] = {
    "DAC": {"banking": 66, "stackoverflow": 15, "clinc": 130},
    "DPN": {"banking": 67, "stackoverflow": 18, "clinc": 137},
}
TRUE_CATEGORIES: dict[str, int] = {"banking": 77, "stackoverflow": 20, "clinc": 150}
