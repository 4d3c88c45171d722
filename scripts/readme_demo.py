"""Run the demo and put what it prints into the README: python scripts/readme_demo.py"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Replace the text between the README's demo markers with the demo's output."""
    command = [sys.executable, "-m", "newfound", "demo"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    lines = "\n".join(line.rstrip() for line in run.stdout.splitlines())
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    block = f"<!-- demo -->\n```\n{lines}\n```\n<!-- /demo -->"
    text = re.sub("<!-- demo -->.*<!-- /demo -->", lambda _: block, text, flags=re.DOTALL)
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
