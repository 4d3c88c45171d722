"""Measure what own code saves against a library: CPU seconds of its first use in a fresh process.

Prints the table of docs/performance.md. Usage: python benchmarks/library_costs.py
"""

import subprocess
import sys

REPEATS = 7  # the least of them counts: other programs on the machine only add
START = """
import time
import numpy as np, torch
import newfound.describing.descriptions, newfound.methods.newfound.method
weight = torch.nn.Parameter(torch.ones(384, 512))
weight.grad = torch.ones_like(weight)
points = np.random.default_rng(0).standard_normal((77, 384))
plane = 1e-4 * points[:, :2]
begun = time.process_time()
{}
print(time.process_time() - begun)
"""
CASES = {
    "AdamW: the first step": (
        "from newfound.training.optimiser import CpuAdamW\n"
        "CpuAdamW([([weight], 0.01)], torch.tensor(1e-3)).step()",
        "torch.optim.AdamW([weight], lr=1e-3, fused=True).step()",
    ),
    "t-SNE: 77 categories": (
        "from newfound.describing.tsne import embed\nembed(points, plane, 8.0, 0)",
        "from sklearn.manifold import TSNE\n"
        "TSNE(perplexity=8, init=plane.astype('f4'), random_state=0).fit_transform(points)",
    ),
}


def seconds(code: str) -> float:
    """Return the least CPU time of a piece of code over fresh processes."""
    command = [sys.executable, "-c", START.format(code)]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(REPEATS))


print("|  | own code, seconds | library, seconds |\n| :-- | --: | --: |")
for name, (own, library) in CASES.items():
    print(f"| {name} | {seconds(own):.2f} | {seconds(library):.2f} |", flush=True)
