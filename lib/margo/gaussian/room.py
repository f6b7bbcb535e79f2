"""Memory that passes over much data use again and again."""

import numpy as np


class Room:
    """Arrays by name, made when first asked for: to get fresh memory from the system costs more than much of the
    arithmetic done in it. An array holds until the same name is asked for again."""

    def __init__(self):
        self.kept: dict[str, np.ndarray] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype=np.float64) -> np.ndarray:
        """Not cleared."""
        size, kept = int(np.prod(shape)), self.kept.get(name)
        if kept is None or len(kept) < size or kept.dtype != dtype:
            kept = self.kept[name] = np.empty(size, dtype)
        return kept[:size].reshape(shape)
