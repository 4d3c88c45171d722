"""Checkpoints: work of an unfinished run, kept so that the same command goes on from it.

A folder of unfinished work, `.NAME.unfinished` beside the run folder NAME, holds

| file | contents |
|---|---|
| progress.json | fingerprint, command, stage and share of the stage (`progress`) |
| KEY.checkpoint | one piece of work: a checksum, then JSON (`pieces`) |
| KEY-*.safetensors | its tensors; their checksum is in KEY.checkpoint |

1. The fingerprint covers everything that the work depends on. Work with another fingerprint is
   discarded, never mixed with new work.
2. Keeping may take a small share of the time since the start. What is as quick to repeat is not
   kept.
3. A file that is damaged is ignored, and its work is repeated. So files need not be flushed to
   disk: after a power cut, a checksum does not match.
4. The random state of torch is kept with the work, so that later draws do not depend on whether
   work was loaded or done.
"""

from newfound.checkpoints.checkpoints import Checkpoints
from newfound.checkpoints.pieces import Kept
from newfound.checkpoints.progress import (
    Position,
    Unfinished,
    read_unfinished,
    unfinished_folder,
)

__all__ = [
    "Checkpoints",
    "Kept",
    "Position",
    "Unfinished",
    "read_unfinished",
    "unfinished_folder",
]
