"""Score-spaces of hidden Markov models: one utterance -> one vector ([L04] 4.5, 5.4).

The same layout as for mixtures (:mod:`margo.kernel.scorespace`). The derivatives are moments of the frames under the
posteriors, so their cost is that of forward-backward and matrix products; the products with second derivatives that
training needs come from one more pass over the chain instead of the O(E^2 T^2) table of [L04].
"""

from dataclasses import dataclass, replace

import numpy as np

from margo.gaussian.mixtures import log_components, share_components
from margo.gaussian.pool import GaussianPool
from margo.kernel import scorespace
from margo.kernel.chain import Occupancy, chain_of, occupy
from margo.model.graph import Arcs, align_graph
from margo.model.hmm import HmmSet


@dataclass(frozen=True, eq=False)
class WordModel:
    """A chain (:func:`margo.kernel.chain.make_chain`) whose states 0 .. S-1 are the mixtures of ``pool`` (diagonal
    Gaussians, the parameters), the rest fixed (silence)."""

    chain: Arcs
    pool: GaussianPool


@dataclass(frozen=True, eq=False)
class Frames:
    """Utterances ``bounds[i]:bounds[i + 1]`` of ``x`` [T, D]; ``fixed`` [T, F] scores the states no model owns."""

    x: np.ndarray
    bounds: np.ndarray
    fixed: np.ndarray

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    @property
    def utterances(self) -> list[slice]:
        return [slice(first, last) for first, last in zip(self.bounds[:-1], self.bounds[1:])]

    def take(self, utterances) -> "Frames":
        """Some of the utterances, in the order given."""
        rows = [np.arange(self.bounds[i], self.bounds[i + 1]) for i in utterances]
        bounds = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        rows = np.concatenate(rows)
        return Frames(self.x[rows], bounds, self.fixed[rows])


def silence_states(hmms: HmmSet) -> np.ndarray:
    """Pool states of the silence unit, int [F]; empty where there is none."""
    if hmms.silence is None:
        return np.empty(0, np.int64)
    return np.unique(hmms.units[hmms.unit_index[hmms.silence]].states)


def word_model(hmms: HmmSet, word: str) -> WordModel:
    """The model of one word: its own Gaussians as parameters, silence around it fixed."""
    graph, fixed = align_graph(hmms, [word]), silence_states(hmms)
    own = np.array([state for state in graph.states if state not in fixed])
    place = {int(state): number for number, state in enumerate([*own, *fixed])}
    chain = chain_of(graph)
    column = np.array([place[int(graph.states[s])] for s in chain.column])
    return WordModel(chain._replace(column=column), hmms.pool.take(own))


@dataclass(frozen=True, eq=False)
class _Scored:
    """One model on all utterances: posteriors, and the moments of the frames under them."""

    occupancy: Occupancy
    shares: np.ndarray  # [T, K]: posterior of each component within its state
    gaussians: np.ndarray  # gamma [T, K] ([L04] (48))
    moments: tuple  # zeroth [N, K], first [N, K, D], second [N, K, D] (0 where the space does not need it)


def _to_states(model: WordModel, nodes: np.ndarray) -> np.ndarray:
    """Sum over the nodes of each own state: [T, E] -> [T, S]."""
    return nodes @ (model.chain.column[:, None] == np.arange(model.pool.n_states)).astype(float)


def _scored(model: WordModel, frames: Frames, second: bool) -> _Scored:
    pool = model.pool
    states, shares = share_components(log_components(pool, frames.x), pool.offsets)
    occupancy = occupy(model.chain, np.concatenate([states, frames.fixed], axis=1), frames.bounds)
    gaussians = shares * _to_states(model, occupancy.nodes)[:, pool.owners]
    zeroth, squares = np.add.reduceat(gaussians, frames.bounds[:-1]), np.zeros(())
    first = np.stack([gaussians[rows].T @ frames.x[rows] for rows in frames.utterances])
    if second:
        squares = np.stack([gaussians[rows].T @ frames.x[rows] ** 2 for rows in frames.utterances])
    return _Scored(occupancy, shares, gaussians, (zeroth, first, squares))


def _derivatives(pool: GaussianPool, zeroth, first, second):
    """Of ``sum_t gamma_t log N(x_t)`` by means and by variances, [..., K, D] each, from moments ([L04] (31), (32))."""
    n, mu, v = zeroth[..., None], pool.means, pool.variances
    spread = second - 2.0 * first * mu + n * mu**2  # sum_t gamma (x - mu)^2
    return (first - n * mu) / v, 0.5 * (spread / v**2 - n / v)


def _gradient(model: WordModel, frames: Frames, scored: _Scored, d_loglik, on, window):
    """Gradient of ``sum_i d_loglik_i l(X_i) + on_i . grad l(X_i)`` by means and variances ([L04] (46), (76), (82));
    ``on`` is None for likelihoods alone, else two arrays [N, K, D].

    ``rates[t, k] = on_k . g_k(x_t)`` is how fast component k's log density at frame t moves along ``on``; its
    covariance with the component's occupancy weights the component's own derivatives, and the Gaussian's second
    derivatives act on ``on`` under the posteriors.
    """
    pool, x, weights = model.pool, frames.x, np.repeat(d_loglik, np.diff(frames.bounds))[:, None]
    if on is None:
        weights = scored.gaussians * weights
        return _derivatives(pool, weights.sum(0), weights.T @ x, weights.T @ x**2)
    (on_mean, on_variance), mu, v = on, pool.means, pool.variances
    linear, quadratic = on_mean / v - on_variance * mu / v**2, 0.5 * on_variance / v**2
    constant = (0.5 * on_variance * (mu**2 / v**2 - 1.0 / v) - on_mean * mu / v).sum(2)
    rates = np.concatenate([x[rows] @ linear[i].T + x[rows] ** 2 @ quadratic[i].T + constant[i]
                            for i, rows in enumerate(frames.utterances)])  # fmt: skip
    state_rates = np.add.reduceat(scored.shares * rates, pool.offsets[:-1], axis=1)
    node_rates = np.concatenate([state_rates, np.zeros_like(frames.fixed)], axis=1)[:, model.chain.column]
    # from other frames through the chain, and from the frame's own component
    response = _to_states(model, scored.occupancy.response(node_rates, window))[:, pool.owners] * scored.shares
    weights = response + scored.gaussians * (rates + weights)
    d_means, d_variances = _derivatives(pool, weights.sum(0), weights.T @ x, weights.T @ x**2)
    n, by_mean, by_variance = scored.moments[0][..., None], *_derivatives(pool, *scored.moments)
    # the derivatives of the derivatives under fixed posteriors: -n / v, -by_mean / v and
    # n / 2 v^2 - spread / v^3 = -n / 2 v^2 - 2 by_variance / v
    d_means -= ((on_mean * n + on_variance * by_mean) / v).sum(0)
    d_variances -= (on_mean * by_mean / v + on_variance * (0.5 * n / v**2 + 2.0 * by_variance / v)).sum(0)
    return d_means, d_variances


def score(models, frames: Frames, space: str, window: int | None = None, per_frame: bool = True):
    """``(phi [N, P], pullback)`` of utterances in the score-space of word ``models`` ([L04] (18)-(25), (45)).

    ``pullback(d_phi [N, P])`` returns the gradient as one ``(d_means [K, D], d_variances [K, D])`` a model. ``window``
    keeps only time correlations up to that many frames apart in it (None: all). ``per_frame`` divides each
    utterance's scores by its length, so that long utterances do not rule the kernel.
    """
    likelihoods, *wanted = scorespace.layout(space, len(models))
    all_scored = [_scored(model, frames, second=wanted[1]) for model in models]
    scale = 1.0 / np.diff(frames.bounds)[:, None] if per_frame else np.ones((frames.count, 1))
    columns = [np.stack([scored.occupancy.log_likelihoods for scored in all_scored], axis=1) @ likelihoods]
    for model, scored in zip(models, all_scored):
        both = zip(_derivatives(model.pool, *scored.moments), wanted)
        columns += [part.reshape(frames.count, -1) for part, taken in both if taken]

    def pullback(d_phi: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        d_likelihoods, rest = np.split(d_phi * scale, [likelihoods.shape[1]], axis=1)
        gradients = []
        for model, scored, d_loglik in zip(models, all_scored, (d_likelihoods @ likelihoods.T).T):
            shape, on = model.pool.means.shape, [np.zeros((frames.count, 1, 1))] * 2
            for kind in np.flatnonzero(wanted):
                part, rest = np.split(rest, [model.pool.means.size], axis=1)
                on[kind] = part.reshape(-1, *shape)
            gradients.append(_gradient(model, frames, scored, d_loglik, on if any(wanted) else None, window))
        return gradients

    return np.concatenate(columns, axis=1) * scale, pullback


def blocks(models, space: str) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P]; as :func:`margo.kernel.scorespace.blocks`."""
    gaussians = sum(model.pool.n_gaussians for model in models)
    return scorespace.blocks(space, len(models), gaussians, models[0].pool.dimension)


def to_vector(models, start) -> np.ndarray:
    """The vectors of :func:`margo.kernel.scorespace.to_vector`, model by model, as one."""
    return np.concatenate([scorespace.to_vector(model.pool, first.pool) for model, first in zip(models, start)])


def from_vector(vector: np.ndarray, start) -> list[WordModel]:
    """The inverse of :func:`to_vector`."""
    parts = np.split(vector, np.cumsum([2 * first.pool.means.size for first in start])[:-1])
    return [replace(first, pool=scorespace.from_vector(part, first.pool)) for part, first in zip(parts, start)]


def gradient_to_vector(models, start, gradients) -> np.ndarray:
    """Chain rule of :func:`from_vector`."""
    return np.concatenate([scorespace.gradient_to_vector(model.pool, first.pool, *gradient)
                           for model, first, gradient in zip(models, start, gradients)])  # fmt: skip
