"""Pairs of the large-margin program against margins computed frame by frame, and the choice of tokens."""

import operator
import tracemalloc
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

from margo.errors import MargoError
from margo.estimate.lme import Problem, margins, solve
from margo.estimate.lme.ascent import ascend, soft_minimum
from margo.estimate.lme.model import move
from margo.estimate.lme.tokens import Owners, Pairs, choose_tokens, make_pairs, make_problem, value_of
from margo.estimate.paths import find_paths, searcher
from margo.formats.scratch import Scratch
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.pool import GaussianPool
from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words
from oracles import best_gaussians, path_components

D, WORDS = 3, ("a", "b", "c")


def model(generator, kind, mixtures=2):
    """Three words of two states and a silence, all Gaussians different in mean and variance."""
    hmms = flat_start(whole_words(WORDS), 2, np.zeros(D), np.ones(D), silence="sil", silence_states=1,
                      meta={"grammar": grammar(kind)})  # fmt: skip
    states = hmms.pool.n_states
    number = states * mixtures
    weights = generator.dirichlet(np.full(mixtures, 3.0), states).ravel()
    pool = GaussianPool(
        generator.normal(0, 1.5, (number, D)), generator.uniform(0.5, 2, (number, D)), np.log(weights),
        np.arange(states + 1) * mixtures,
    )  # fmt: skip
    return hmms.with_pool(pool)


def data(generator, kind, number=4):
    for n in range(number):
        words = tuple(generator.choice(WORDS, 1 if kind == "isolated" else generator.integers(1, 3)))
        yield f"u{n}", generator.normal(0, 1.5, (generator.integers(8, 14), D)).astype(np.float32), words


@pytest.mark.parametrize("augmented", [False, True])
def test_gradients_by_deviations_are_those_of_the_margins(augmented):
    """Central differences of the margins of fixed paths and Gaussians, along random moves of all coordinates; the
    dimension that augmentation has added keeps its variance."""
    generator = np.random.default_rng(5)
    hmms = model(generator, "loop")
    if augmented:
        hmms = move(hmms, np.zeros((hmms.pool.n_gaussians, D)), generator.uniform(0.5, 1, hmms.pool.n_gaussians), 1.0)
    utterances = [(name, hmms.padded(x), words) for name, x, words in data(generator, "loop")]
    paths = find_paths(searcher(hmms, np.float64), utterances, 2)
    x = paths.frames(utterances)
    pairs = make_pairs(hmms, x, paths, variances=True)
    assert pairs.gradients.shape[1] == 2 * hmms.pool.dimension
    owners = np.repeat(np.arange(len(pairs.margins)), np.diff(pairs.entry_start))
    direction = generator.normal(size=(hmms.pool.n_gaussians, 2 * hmms.pool.dimension))
    if augmented:
        assert (pairs.gradients[:, -1] == 0).all()
        direction[:, -1] = 0
    slope = np.bincount(owners, (pairs.gradients * direction[pairs.gaussian]).sum(axis=1), len(pairs.margins))
    step, nothing, ends = 1e-5, np.zeros(hmms.pool.n_gaussians), []
    for sign in (-1, 1):
        moved, scores = move(hmms, sign * step * direction, nothing, 1.0), []
        for i in range(paths.n_utterances):
            frames = x[paths.bounds[i] : paths.bounds[i + 1]].astype(np.float64)
            for path in range(paths.first[i], paths.first[i + 1]):
                states = paths.states[paths.start[path] : paths.start[path + 1]]
                gaussians = best_gaussians(hmms.pool, frames, states)
                scores.append(path_score(moved.pool, frames, states, paths.constants[path], gaussians))
        ends.append(np.array([scores[paths.first[i]] - scores[path] for i in range(paths.n_utterances)
                              for path in range(paths.first[i] + 1, paths.first[i + 1])]))  # fmt: skip
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), rtol=1e-4, atol=1e-4)
    if augmented:
        assert (moved.pool.variances[:, -1] == 1).all()


def test_variances_stop_at_the_floor():
    hmms = replace(model(np.random.default_rng(6), "loop"), variance_floor=np.full(D, 0.4))
    shift = np.zeros((hmms.pool.n_gaussians, 2 * D))
    shift[:, D:] = -10.0
    np.testing.assert_array_equal(move(hmms, shift, np.zeros(len(shift)), 1.0).pool.variances, 0.4)


def path_score(pool, x, states, constant, gaussians=None):
    """Score of a path in which each frame counts with one Gaussian: the best, or a given one."""
    logs = path_components(pool, x, states)
    if gaussians is None:
        return constant + logs.max(axis=1).sum()
    return constant + logs[np.arange(len(x)), gaussians - pool.offsets[states]].sum()


@pytest.mark.parametrize("kind", ["isolated", "loop"])
def test_pairs_are_the_margins_of_the_paths_before_and_after_any_shift(kind):
    generator = np.random.default_rng(3)
    hmms = model(generator, kind)
    utterances = list(data(generator, kind))
    paths = find_paths(searcher(hmms, np.float64), utterances, 2)
    x = paths.frames(utterances)
    pairs = make_pairs(hmms, x, paths)
    problem = make_problem(pairs, hmms.pool.n_gaussians, 1.0, None)
    shift = 0.3 * generator.normal(size=hmms.pool.means.shape)
    moved = move(hmms, shift, np.zeros(len(shift)), 1.0)
    after = margins(problem, shift, np.zeros(len(shift)))
    pair = 0
    for i, name in enumerate(paths.names):
        frames = dict((n, f) for n, f, _ in utterances)[name]
        scores, later = [], []
        for path in range(paths.first[i], paths.first[i + 1]):
            states = paths.states[paths.start[path] : paths.start[path + 1]]
            gaussians = best_gaussians(hmms.pool, frames, states)
            scores.append(path_score(hmms.pool, frames, states, paths.constants[path]))
            later.append(path_score(moved.pool, frames, states, paths.constants[path], gaussians))
        for competitor in range(1, len(scores)):
            assert pairs.margins[pair] == pytest.approx(scores[0] - scores[competitor], abs=1e-9)
            assert after[pair] == pytest.approx(later[0] - later[competitor], abs=1e-4)  # entries are float32
            assert pairs.token[pair] == i
            pair += 1
    assert pair == len(pairs.margins) > 0
    totals = np.bincount(problem.pair, problem.counts, len(pairs.margins))
    assert np.abs(totals).max() == 0, "both paths of a pair have the same number of frames"


def test_dividing_by_frames_divides_everything():
    generator = np.random.default_rng(4)
    hmms = model(generator, "loop")
    utterances = list(data(generator, "loop"))
    paths = find_paths(searcher(hmms), utterances, 2)
    x = paths.frames(utterances)
    plain, divided = make_pairs(hmms, x, paths), make_pairs(hmms, x, paths, per_frame=True)
    shift = 0.2 * generator.normal(size=hmms.pool.means.shape)
    values = [margins(make_problem(p, hmms.pool.n_gaussians, 1.0, None), shift, np.zeros(len(shift)))
              for p in (plain, divided)]  # fmt: skip
    assert values[0] / plain.frames[plain.token] == pytest.approx(values[1], rel=1e-5)


def test_chunks_of_pairs_add_up_to_the_whole():
    generator = np.random.default_rng(5)
    hmms = model(generator, "isolated")
    utterances = list(data(generator, "isolated", 6))
    search = searcher(hmms)

    def pairs(some):
        paths = find_paths(search, some, 2)
        return make_pairs(hmms, paths.frames(some), paths)

    whole, parts = pairs(utterances), operator.iadd(pairs(utterances[:2]), pairs(utterances[2:]))
    for name in ("margins", "token", "frames", "entry_start", "gaussian", "counts", "gradients"):
        assert np.array_equal(getattr(whole, name), getattr(parts, name)), name
    some = whole.select(whole.token_margins >= np.median(whole.token_margins))
    assert 0 < len(some.margins) < len(whole.margins)
    assert some.entry_start[-1] == len(some.gaussian) == len(some.counts) == len(some.gradients)


def test_tokens_are_chosen_by_number_threshold_and_sign():
    values = np.array([3.0, -1.0, 0.5, 2.0, np.inf, 1.0])
    assert choose_tokens(values, None, None, False).tolist() == [True, True, True, True, False, True]
    assert choose_tokens(values, 2, None, True).tolist() == [False, False, True, False, False, True]
    assert choose_tokens(values, 2, None, False).tolist() == [False, True, True, False, False, False]
    assert choose_tokens(values, None, 1.0, True).tolist() == [False, False, True, False, False, True]
    with pytest.raises(MargoError, match="--init.*--hard"):
        choose_tokens(np.array([-1.0, -2.0]), None, None, True)


def test_hard_epochs_raise_the_smallest_margin_and_end_without_errors():
    """On separable data the paper's program, misrecognised tokens counted, leaves no training error."""
    generator = np.random.default_rng(11)
    truth, hmms = model(generator, "isolated", 1), model(generator, "isolated", 1)
    utterances = []
    for n in range(24):
        word = n % len(WORDS)
        states = truth.units[word].states[[0, 0, 0, 1, 1, 1]]
        frames = truth.pool.means[states] * 2 + 0.3 * generator.normal(size=(6, D))
        utterances.append((f"u{n}", frames.astype(np.float32), (WORDS[word],)))

    def measured(current):
        paths = find_paths(searcher(current), utterances, 2)
        return make_pairs(current, paths.frames(utterances), paths)

    pairs = measured(hmms)
    assert (pairs.token_margins < 0).sum() > 3
    smallest, radius = pairs.margins.min(), 0.2
    while smallest < 0 and radius > 1e-3:
        found = solve(make_problem(pairs, hmms.pool.n_gaussians, radius * hmms.pool.n_gaussians, None))
        candidate = move(hmms, found.shift, found.augmentation, radius)
        after = measured(candidate)
        if after.margins.min() > smallest:
            hmms, pairs, smallest = candidate, after, after.margins.min()
        else:
            radius /= 2
    assert (pairs.token_margins >= 0).all()


def test_the_value_is_what_the_program_maximises():
    generator = np.random.default_rng(6)
    values = generator.normal(size=37)
    assert value_of(values, None) == values.min()
    for nu in (0.05, 0.31, 1.0):
        slack = 1 / (nu * len(values))
        levels = np.linspace(values.min() - 1, values.max() + 1, 20001)
        brute = max(level - slack * np.maximum(0, level - values).sum() for level in np.append(levels, values))
        assert value_of(values, nu) == pytest.approx(brute, abs=1e-9)


def instance(generator, pairs=12, gaussians=5):
    touched = [generator.choice(gaussians, 3, replace=False) for _ in range(pairs)]
    counts = np.array([[2.0, -1.0, -1.0]] * pairs).ravel()
    return Problem(generator.normal(size=pairs), np.repeat(np.arange(pairs), 3), np.concatenate(touched), counts,
                   generator.normal(size=(3 * pairs, 4)), gaussians, 0.7)  # fmt: skip


def test_ascent_has_the_right_gradient_never_falls_and_stays_in_the_ball():
    problem = instance(np.random.default_rng(7))
    generator = np.random.default_rng(8)
    shift, direction = 0.1 * generator.normal(size=(2, 5, 4))
    _, gradient = soft_minimum(problem, shift, 1.3)
    step = 1e-6
    difference = soft_minimum(problem, shift + step * direction, 1.3)[0]
    difference -= soft_minimum(problem, shift - step * direction, 1.3)[0]
    assert difference / (2 * step) == pytest.approx((gradient * direction).sum(), rel=1e-6)
    final, values = ascend(problem, 1.3)
    assert (np.diff(values) > 0).all() and len(values) > 3
    assert (final**2).sum() <= problem.radius2 * (1 + 1e-12)


def test_an_augmented_model_scores_as_the_widened_margins_say():
    generator = np.random.default_rng(9)
    hmms = model(generator, "isolated")
    widths = generator.uniform(0, 1, hmms.pool.n_gaussians)
    shift = 0.1 * generator.normal(size=hmms.pool.means.shape)
    once = move(hmms, shift, widths, 1.0)
    assert once.meta["augmented"] and once.pool.dimension == D + 1
    x = generator.normal(size=(7, D))
    padded = np.pad(x, ((0, 0), (0, 1)))
    states = generator.integers(0, hmms.pool.n_states, 7)
    plain = move(hmms, shift, np.zeros_like(widths), 1.0)
    lost = path_components(plain.pool, x, states) - path_components(once.pool, padded, states)
    gaussians = hmms.pool.offsets[states][:, None] + np.arange(2)
    assert lost == pytest.approx(0.5 * widths[gaussians] + 0.5 * np.log(2 * np.pi))
    twice = move(once, np.zeros((len(widths), D + 1)), widths, 1.0)
    assert twice.pool.dimension == D + 1
    assert twice.pool.means[:, -1] ** 2 == pytest.approx(2 * widths)
    scores = log_likelihoods(scorer(twice.pool, dtype=np.float64), padded)
    assert np.isfinite(scores).all()


def chunks_of_pairs(number=6):
    generator = np.random.default_rng(7)
    hmms = model(generator, "loop")
    for _ in range(number):
        utterances = list(data(generator, "loop"))
        paths = find_paths(searcher(hmms, np.float64), utterances, 2)
        yield make_pairs(hmms, paths.frames(utterances), paths)


def collected(scratch, parts):
    return reduce(operator.iadd, parts, Pairs.none(D, scratch.rows)).settled()


def test_pairs_of_chunks_follow_each_other_in_memory_and_in_a_file(tmp_path):
    chunks = list(chunks_of_pairs())
    whole = {
        "margins": np.concatenate([chunk.margins for chunk in chunks]),
        "frames": np.concatenate([chunk.frames for chunk in chunks]),
        "gaussian": np.concatenate([chunk.gaussian for chunk in chunks]),
        "counts": np.concatenate([chunk.counts for chunk in chunks]),
        "gradients": np.concatenate([chunk.gradients for chunk in chunks]),
        "entry_start": np.concatenate([[0], np.cumsum([n for chunk in chunks for n in np.diff(chunk.entry_start)])]),
    }
    for most in (10**9, 100):
        together = collected(Scratch(tmp_path, most), chunks_of_pairs())
        assert isinstance(together.gradients, np.ndarray) == (most > 100)
        for name, expected in whole.items():
            held = getattr(together, name)[:]
            assert (held.dtype, held.tolist()) == (expected.dtype, expected.tolist()), name
        assert together.token.max() == len(together.frames) - 1
        owners = np.repeat(np.arange(len(together.margins)), np.diff(together.entry_start))
        for first in range(0, len(owners), 7):
            assert Owners(together.entry_start)[first : first + 20].tolist() == owners[first : first + 20].tolist()
        some = np.arange(len(together.frames)) % 3 == 0
        chosen, apart = together.select(some), collected(Scratch(None), chunks_of_pairs()).select(some)
        for name in whole:
            assert getattr(chosen, name)[:].tolist() == getattr(apart, name).tolist()
        assert together.select(np.ones(len(together.frames), bool)) is together, "those of all are not copied"


@pytest.mark.parametrize("method", ["gradient", "auto", "dual", "gd"])
@pytest.mark.parametrize("nu", [None, 0.4])
def test_a_program_whose_pairs_are_in_a_file_has_the_same_solution_to_the_bit(tmp_path, monkeypatch, method, nu):
    once = collected(Scratch(None), chunks_of_pairs(12))
    once = make_problem(once.select(np.arange(len(once.frames)) % 5 != 1), 14, 1.0, nu)
    best = ascend(once, 0.3, 20)[1][-1] if method == "gd" else solve(once, method, 1e-4).objective
    monkeypatch.setattr("margo.estimate.lme.layout.RUN", 64)  # so that there are runs, and Gaussians cut in two
    monkeypatch.setattr("margo.estimate.lme.layout.SMALL", 2)
    monkeypatch.setattr("margo.estimate.lme.tokens.BLOCK", 5)
    found = []
    for most in (10**9, 100):
        pairs = collected(Scratch(tmp_path, most), chunks_of_pairs(12))
        pairs = pairs.select(np.arange(len(pairs.frames)) % 5 != 1)
        problem = make_problem(pairs, 14, 1.0, nu)
        assert problem.stored == (most == 100)
        if method == "gd":
            shift, values = ascend(problem, 0.3, 20)
            found.append((shift.tobytes(), values[-1]))
        else:
            solution = solve(problem, method, 1e-4)
            found.append((solution.shift.tobytes(), solution.multipliers.tobytes(), solution.gap, solution.objective))
    assert found[0] == found[1]
    assert found[0][-1] == pytest.approx(best, abs=2e-4 * max(1, abs(best)))


def test_a_sum_of_pairs_does_not_grow_with_them(tmp_path):
    def large(number):
        for _ in range(number):
            yield Pairs(np.zeros(500), np.arange(500), np.ones(500, int), np.arange(501) * 20,
                        np.zeros(10_000, np.int32), np.zeros(10_000), np.zeros((10_000, D), np.float32))  # fmt: skip

    peaks = []
    for number in (10, 80):
        tracemalloc.start()
        whole = collected(Scratch(tmp_path, 1 << 18), large(number))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    entries = whole.entry_start[-1] * (8 + 4 + 4 * D)
    assert peaks[1] - peaks[0] < 0.25 * entries  # what is left is margins, tokens, frames and beginnings: by pair
