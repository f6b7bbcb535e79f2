"""Score-spaces of hidden Markov models: one utterance -> one vector ([L04] 4.5, 5.4).

The same layout as for mixtures (:mod:`margo.kernel.scorespace`). The derivatives are moments of the frames under the
posteriors, so their cost is that of forward-backward and matrix products; the products with second derivatives that
training needs come from one more pass over the chain instead of the O(E^2 T^2) table of [L04]. A frame has one or two
Gaussians that matter: loops over those that have some posterior are faster here than products of whole matrices.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.gaussian.mixtures import share_components
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

    @cached_property
    def centre(self) -> np.ndarray:
        return self.x.mean(0)

    @cached_property
    def products(self) -> np.ndarray:
        """[2 D + 1, T]: squares, frames about their centre, and ones: log densities of any Gaussians are products with
        them. Frames are columns: products of few Gaussians with many frames are faster so."""
        y = (self.x - self.centre).T
        return np.concatenate([y**2, y, np.ones((1, len(self.x)))])

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
    """One model on all utterances: posteriors, and derivatives of the likelihoods."""

    occupancy: Occupancy
    shares: np.ndarray  # [T, K]: posterior of each component within its state
    frames_of: np.ndarray  # [N, K]: frames that each Gaussian has of an utterance
    derivatives: list[np.ndarray | None]  # by means and variances [N, K, D], by the weights' logits [N, K]; if wanted


@njit(cache=True)
def _moments(x, visits, column, offsets, shares, squares):
    """Zeroth [N, K], first and, where wanted, second [N, K, D] moments of each utterance's frames under the posteriors
    of the Gaussians, what the nodes of a state have shared out ([L04] (48))."""
    count, gaussians, dims = len(visits.bounds) - 1, shares.shape[1], x.shape[1]
    zeroth, first = np.zeros((count, gaussians)), np.zeros((count, gaussians, dims))
    second = np.zeros((count if squares else 0, gaussians, dims))
    for i in range(count):
        for t in range(visits.bounds[i], visits.bounds[i + 1]):
            for m in range(visits.starts[t], visits.starts[t + 1]):
                state = column[visits.node[m]]
                if state < len(offsets) - 1:
                    for k in range(offsets[state], offsets[state + 1]):
                        weight = visits.gamma[m] * shares[t, k]
                        zeroth[i, k] += weight
                        for d in range(dims):
                            first[i, k, d] += weight * x[t, d]
                        if squares:
                            for d in range(dims):
                                second[i, k, d] += weight * x[t, d] * x[t, d]
    return zeroth, first, second


@njit(cache=True, fastmath={"reassoc"})
def _rates(x, visits, column, offsets, shares, constant, linear, quadratic):
    """``(rates [M, C], visit rates [M])``: ``constant_ik + linear_ik . x_t + quadratic_ik . x_t^2`` of the (at most C)
    Gaussians of each visit, and what the visit gets of them. Without ``quadratic``, N = 0, there are no squares."""
    rates, visit_rates = np.zeros((len(visits.node), np.diff(offsets).max())), np.zeros(len(visits.node))
    for i in range(len(visits.bounds) - 1):
        for t in range(visits.bounds[i], visits.bounds[i + 1]):
            for m in range(visits.starts[t], visits.starts[t + 1]):
                state = column[visits.node[m]]
                if state < len(offsets) - 1:
                    for k in range(offsets[state], offsets[state + 1]):
                        rate = 0.0
                        for d in range(x.shape[1]):
                            rate += x[t, d] * linear[i, k, d]
                        if len(quadratic):
                            for d in range(x.shape[1]):
                                rate += x[t, d] * x[t, d] * quadratic[i, k, d]
                        rates[m, k - offsets[state]] = rate + constant[i, k]
                        visit_rates[m] += shares[t, k] * (rate + constant[i, k])
    return rates, visit_rates


@njit(cache=True)
def _weighted_moments(x, visits, column, offsets, shares, rates, response, d_loglik):
    """Moments as :func:`_moments`, of all utterances together: each Gaussian's derivatives at each frame weigh what
    comes from other frames through the chain, from the frame's own component, and ``d_loglik`` [N] of the likelihood.
    """
    gaussians, dims = shares.shape[1], x.shape[1]
    zeroth, first, second = np.zeros(gaussians), np.zeros((gaussians, dims)), np.zeros((gaussians, dims))
    for i in range(len(visits.bounds) - 1):
        for t in range(visits.bounds[i], visits.bounds[i + 1]):
            for m in range(visits.starts[t], visits.starts[t + 1]):
                state = column[visits.node[m]]
                if state < len(offsets) - 1:
                    for k in range(offsets[state], offsets[state + 1]):
                        own = visits.gamma[m] * (rates[m, k - offsets[state]] + d_loglik[i])
                        weight = shares[t, k] * (response[m] + own)
                        zeroth[k] += weight
                        for d in range(dims):
                            first[k, d] += weight * x[t, d]
                            second[k, d] += weight * x[t, d] * x[t, d]
    return zeroth, first, second


def _scored(model: WordModel, frames: Frames, wanted) -> _Scored:
    pool = model.pool
    quadratic, linear, constants = pool.covariances.exponents(pool.means - frames.centre)
    exponents = np.concatenate([quadratic, linear, (constants + pool.log_weights)[:, None]], axis=1)
    scores = np.empty((pool.n_states + frames.fixed.shape[1], len(frames.x)))
    if pool.n_gaussians > pool.n_states:
        log_p = np.ascontiguousarray((exponents @ frames.products).T)
        scores[: pool.n_states].T[:], shares = share_components(log_p, pool.offsets)
    else:
        np.matmul(exponents, frames.products, out=scores[: pool.n_states])
        shares = np.ones((len(frames.x), pool.n_states))
    scores[pool.n_states :] = frames.fixed.T
    occupancy = occupy(model.chain, scores.T, frames.bounds)
    moments = _moments(frames.x, occupancy, model.chain.column, pool.offsets, shares, wanted[1])
    return _Scored(occupancy, shares, moments[0], _derivatives(pool, *moments, wanted))


def _derivatives(pool: GaussianPool, zeroth, first, second, wanted=(True, True, True)) -> list[np.ndarray | None]:
    """Of ``sum_t gamma_t log w N(x_t)`` by means and variances [..., K, D], and by the weights' logits [..., K] (what
    they get of their state's frames less what they promise), of moments ([L04] (31), (32)); None if not wanted."""
    n, mu, v = zeroth[..., None], pool.means, pool.variances
    found = [None, None, None]
    if wanted[0]:
        found[0] = (first - n * mu) / v
    if wanted[1]:
        spread = second - (2.0 * first - n * mu) * mu  # sum_t gamma (x - mu)^2
        found[1] = 0.5 * (spread / v**2 - n / v)
    if wanted[2]:
        whole = np.add.reduceat(zeroth, pool.offsets[:-1], axis=-1)[..., pool.owners]
        found[2] = zeroth - np.exp(pool.log_weights) * whole
    return found


def _slopes(pool: GaussianPool, on) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(constant [N, K], linear [N, K, D], quadratic)`` of x: how fast each log density moves along ``on``."""
    (on_mean, on_variance, on_weight), mu, v = on, pool.means, pool.variances
    linear, quadratic, constant = 0.0, np.empty((0, *mu.shape)), 0.0
    if on_mean is not None:
        linear = on_mean / v
        constant = -np.einsum("nkd,kd->nk", linear, mu)
    if on_variance is not None:
        quadratic = 0.5 * on_variance / v**2
        linear = linear - 2.0 * quadratic * mu
        constant = constant + np.einsum("nkd,kd->nk", quadratic, mu**2 - v)
    if on_weight is not None:
        promised = np.add.reduceat(np.exp(pool.log_weights) * on_weight, pool.offsets[:-1], axis=1)
        constant = constant + on_weight - promised[:, pool.owners]
        linear = np.zeros((len(on_weight), *mu.shape)) if np.isscalar(linear) else linear
    return constant, linear, quadratic


def _gradient(model: WordModel, frames: Frames, scored: _Scored, d_loglik, on, window):
    """Gradient of ``sum_i d_loglik_i l(X_i) + on_i . grad l(X_i)`` by means and variances ([L04] (46), (76), (82));
    ``on`` is by means and variances [N, K, D] and weights [N, K], None for what the space does not have.

    ``rates[t, k] = on_k . g_k(x_t)`` is how fast component k's log density at frame t moves along ``on``; its
    covariance with the component's occupancy weights the component's own derivatives, and the Gaussian's second
    derivatives act on ``on`` under the posteriors.
    """
    pool, visits = model.pool, scored.occupancy
    layout = frames.x, visits, model.chain.column, pool.offsets, scored.shares
    if any(part is not None for part in on):
        rates, visit_rates = _rates(*layout, *_slopes(pool, on))
        response = visits.response(visit_rates, window)
    else:
        rates, response = np.zeros((len(visits.node), pool.sizes.max())), np.zeros(len(visits.node))
    d_means, d_variances, _ = _derivatives(pool, *_weighted_moments(*layout, rates, response, d_loglik))
    # the derivatives of the derivatives under fixed posteriors: -n / v, -by_mean / v and
    # n / 2 v^2 - spread / v^3 = -n / 2 v^2 - 2 by_variance / v
    (on_mean, on_variance, _), v, n = on, pool.variances, scored.frames_of
    by_mean, by_variance, _ = scored.derivatives
    if on_mean is not None:
        d_means -= np.einsum("nkd,nk->kd", on_mean, n) / v
        d_variances -= np.einsum("nkd,nkd->kd", on_mean, by_mean) / v
    if on_variance is not None:
        d_means -= np.einsum("nkd,nkd->kd", on_variance, by_mean) / v
        d_variances -= np.einsum("nkd,nk->kd", on_variance, n) / (2.0 * v**2)
        d_variances -= np.einsum("nkd,nkd->kd", on_variance, by_variance) * 2.0 / v
    return d_means, d_variances


def score(models, frames: Frames, space: str, window: int | None = None, per_frame: bool = True):
    """``(phi [N, P], pullback)`` of utterances in the score-space of word ``models`` ([L04] (18)-(25), (45)).

    ``pullback(d_phi [N, P])`` returns the gradient as one ``(d_means [K, D], d_variances [K, D])`` a model. ``window``
    keeps only time correlations up to that many frames apart in it (None: all). ``per_frame`` divides each
    utterance's scores by its length, so that long utterances do not rule the kernel.
    """
    likelihoods, parts = scorespace.layout(space, len(models))
    if "second" in parts:
        raise MargoError(f"score-space {space}: second derivatives are of mixtures, not of hidden Markov models")
    wanted = [name in parts for name in ("mean", "var", "weight")]
    needed = (wanted[0] or wanted[1], *wanted[1:])  # second derivatives by variances are made of those by means, too
    all_scored = [_scored(model, frames, needed) for model in models]
    scale = 1.0 / np.diff(frames.bounds)[:, None] if per_frame else np.ones((frames.count, 1))
    columns = [np.stack([scored.occupancy.log_likelihoods for scored in all_scored], axis=1) @ likelihoods]
    for scored in all_scored:
        columns += [part.reshape(frames.count, -1) for part, taken in zip(scored.derivatives, wanted) if taken]

    def pullback(d_phi: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        d_likelihoods, rest = np.split(d_phi * scale, [likelihoods.shape[1]], axis=1)
        gradients = []
        for model, scored, d_loglik in zip(models, all_scored, (d_likelihoods @ likelihoods.T).T):
            shapes = [model.pool.means.shape] * 2 + [(model.pool.n_gaussians,)]
            on = [None, None, None]
            for kind in np.flatnonzero(wanted):
                part, rest = np.split(rest, [np.prod(shapes[kind])], axis=1)
                on[kind] = part.reshape(-1, *shapes[kind])
            gradients.append(_gradient(model, frames, scored, d_loglik, on, window))
        return gradients

    phi = np.concatenate(columns, axis=1)
    phi *= scale
    return phi, pullback


def blocks(models, space: str) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P]; as :func:`margo.kernel.scorespace.blocks`."""
    return scorespace.blocks(space, [model.pool.n_gaussians for model in models], models[0].pool.dimension)


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
