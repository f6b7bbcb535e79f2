"""Pairwise machines on score-spaces of hidden Markov models, one kernel for each pair of words ([L04] 7)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from margo.kernel import hmm_scorespace
from margo.kernel.descent import DescentOptions, Iteration, Trained, train
from margo.kernel.hmm_scorespace import Frames, WordModel
from margo.kernel.metric import measure
from margo.kernel.scorespace import select_features


@dataclass(frozen=True, eq=False)
class WordPair:
    """The kernel and machine of two words: parameters of both models as one vector, weights on the kept scores."""

    theta: np.ndarray
    keep: np.ndarray
    """int [P'], the features of the score-space that the machine sees"""
    weights: np.ndarray
    """[P']"""
    bias: np.ndarray
    """[1]"""

    def decide(self, start: list[WordModel], frames: Frames, space: str, per_frame: bool) -> np.ndarray:
        """[N], positive for the first word; ``start`` are the two ML models."""
        models = hmm_scorespace.from_vector(self.theta, start)
        phi, _ = hmm_scorespace.score(models, frames, space, per_frame=per_frame)
        return phi[:, self.keep] @ self.weights + self.bias


def train_word_pair(
    start: list[WordModel],
    frames: Frames,
    signs: np.ndarray,
    space: str,
    options: DescentOptions,
    *,
    metric: str = "diagonal",
    window: int | None = None,
    per_frame: bool = True,
    features: int = 0,
    report: Callable[[Iteration], None] = lambda line: None,
) -> tuple[WordPair, WordPair, Trained]:
    """``(initial, trained, how)`` from the ML models ``start`` of two words and utterances of both.

    ``signs`` [N] is +1 for the first word. ``features`` keeps that many scores, by their Fisher ratios at the start
    ([L04] (54)); 0 keeps all. ``window`` limits time correlations in the second derivatives.
    """
    first, _ = hmm_scorespace.score(start, frames, space, window, per_frame)
    keep = select_features(first, signs, features) if features else np.arange(first.shape[1])

    def scores(theta):
        moved = hmm_scorespace.from_vector(theta, start)
        phi, pullback = hmm_scorespace.score(moved, frames, space, window, per_frame)

        def back(d_kept):
            d_phi = np.zeros_like(phi)
            d_phi[:, keep] = d_kept
            return hmm_scorespace.gradient_to_vector(moved, start, pullback(d_phi))

        return phi[:, keep], back

    theta = hmm_scorespace.to_vector(start, start)
    measured = partial(measure, kind=metric, blocks=hmm_scorespace.blocks(start, space)[keep])
    made = train(scores, theta, signs, options, measured, report=report)
    return (
        WordPair(theta, keep, made.initial_weights[:, 0], made.initial_bias),
        WordPair(made.theta, keep, made.weights[:, 0], made.bias),
        made,
    )
