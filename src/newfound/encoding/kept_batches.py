"""Keep the output of encoding batch by batch, so that encoding goes on after a fault.

Batches are planned once and finish in their order. A block holds the output of consecutive batches;
blocks follow each other without a gap. Batches that are not kept run exactly as in an unbroken run,
so the output is the same.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from newfound.checkpoints import Checkpoints, Kept


class KeptBatches:
    """Output of batches, kept in blocks.

    Parameters
    ----------
    checkpoints : Checkpoints
    states : Tensor
        Output of all texts, into which the batches write.
    batches : sequence of ndarray
        Rows of the texts of each batch.
    places : callable
        Returns the rows of `states`, as a tensor, that the texts in the given rows fill.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        states: Tensor,
        batches: Sequence[np.ndarray],
        places: Callable[[np.ndarray], Tensor],
    ) -> None:
        self.checkpoints, self.states = checkpoints, states
        self.batches, self.places = batches, places
        self.key = checkpoints.key("encoding")
        self.done = 0  # batches that are finished
        self._kept = 0  # batches that are kept
        self._since = checkpoints.clock()
        self._bytes = states[:1].numel() * states.element_size()  # per row of states

    def load(self) -> int:
        """Fill `states` with the blocks that are kept; return the number of their batches."""
        while self.done < len(self.batches):
            block = self.checkpoints.load(f"{self.key}.{self.done}")
            if block is None:
                break
            place = self._places(self.done, int(block.value))
            self.states[place] = block.tensors["states"].to(self.states.device)
            self.done = int(block.value)
        self._kept = self.done
        return self.done

    def finished(self) -> None:
        """Count one more batch as finished, and keep a block if it is due."""
        self.done += 1
        self.keep()

    def keep(self) -> None:
        """Keep the batches that are finished, if it is due."""
        if self.done == self._kept or not self.checkpoints.due(self._since, 0):
            return  # the usual case, decided before the size is computed
        place = self._places(self._kept, self.done)
        if self.checkpoints.due(self._since, len(place) * self._bytes):
            block = Kept(self.done, {"states": self.states[place]})
            self.checkpoints.save(f"{self.key}.{self._kept}", block)
            self._kept, self._since = self.done, self.checkpoints.clock()

    def _places(self, first: int, stop: int) -> Tensor:
        """Return the rows of `states` that batches `first` to `stop` - 1 fill."""
        place: Tensor = torch.cat([self.places(rows) for rows in self.batches[first:stop]])
        return place.to(self.states.device)
