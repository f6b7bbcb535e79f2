"""Max-margin training: W never rises, is the machine's own optimum, and the published errors come out."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from margo.formats.samples import read_samples
from margo.gaussian.mixtures import log_mixtures
from margo.kernel import artificial, hmm_scorespace, pairs
from margo.kernel.descent import DescentOptions, train
from margo.kernel.hmm_pairs import train_word_pair
from margo.kernel.hmm_scorespace import Frames, word_model
from margo.kernel.metric import METRICS, measure, score_gradient
from margo.kernel.multiclass import vote
from margo.kernel.scorespace import (
    blocks,
    fisher_ratios,
    fit_mixtures,
    from_vector,
    moving_scores,
    score,
    select_features,
    to_vector,
)
from margo.kernel.svm import solve_all, solve_binary
from margo.model.hmm import flat_start, whole_words
from oracles import numeric


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(1)
    x, y = artificial.sample(rng, 300)
    return x, y, np.where(y == 0, 1, -1), fit_mixtures(x, y, 1, rng)


def errors(system, x, y) -> float:
    return 100 * float((vote(system.decide(x), log_mixtures(system.prior, x)) != y).mean())


@pytest.mark.parametrize("metric", ["diagonal", "block"])
@pytest.mark.parametrize("space", ["llr", "llr-mean", "llr-mean-var"])
def test_w_never_rises_and_ends_lower(task, space, metric):
    x, _, signs, pool = task
    history = pairs.train_kernel(x, signs, pool, space, metric, DescentOptions(length=1.0)).history
    objectives = np.array([line.objective for line in history])
    assert (np.diff(objectives) <= 0).all() and objectives[-1] < objectives[0]
    assert any(not line.accepted for line in history), "a step was never undone: back-off is not tested"
    for before, line in zip(history, history[1:]):
        assert line.objective == pytest.approx(before.objective + line.change, rel=1e-12)
        assert line.accepted or line.objective == before.objective


def test_a_step_that_raises_w_is_undone(task):
    """From a trained kernel a long step along the gradient makes W worse, as the machine at its end shows."""
    x, _, signs, pool = task
    good = from_vector(pairs.train_kernel(x, signs, pool, "llr", "diagonal", DescentOptions()).theta, pool)
    made = pairs.train_kernel(x, signs, good, "llr", "diagonal", DescentOptions(length=20.0, iterations=1))
    assert not made.history[1].accepted and made.history[1].objective == made.history[0].objective
    np.testing.assert_array_equal(made.theta, to_vector(good, good))
    found = []

    def taken(z, signs, cost, start):
        found.append(solve_binary(z, signs, cost))
        return found[-1]

    options = DescentOptions(length=20.0, iterations=1)
    train(moving_scores(x, "llr", good), to_vector(good, good), signs, options, solve=taken)
    assert found[1].objective > found[0].objective


def test_w_is_the_value_that_sklearn_finds(task):
    from sklearn.svm import SVC

    x, _, signs, pool = task
    made = pairs.train_kernel(x, signs, pool, "llr-mean", "diagonal", DescentOptions())
    phi, _ = score(from_vector(made.theta, pool), x, "llr-mean")
    kernel = phi / phi.var(0) @ phi.T
    theirs = SVC(C=1.0, kernel="precomputed", tol=1e-6).fit(kernel, signs)
    coefficients = np.zeros(len(x))
    coefficients[theirs.support_] = theirs.dual_coef_[0]
    value = np.abs(coefficients).sum() - 0.5 * coefficients @ kernel @ coefficients
    assert made.history[-1].objective == pytest.approx(value, rel=1e-4)
    wrong = int((np.sign(made.decide(phi)[:, 0]) != signs).sum())
    assert wrong == made.history[-1].train_errors
    assert abs(wrong - int((theirs.predict(kernel) != signs).sum())) <= 1


def test_zero_iterations_is_the_initial_machine_and_tolerance_regularises(task):
    x, _, signs, pool = task
    none = pairs.train_kernel(x, signs, pool, "llr", "diagonal", DescentOptions(iterations=0))
    np.testing.assert_array_equal(none.weights, none.initial_weights)
    assert len(none.history) == 1
    loose, tight = (
        pairs.train_kernel(x, signs, pool, "llr", "diagonal", DescentOptions(tolerance=t)).history for t in (0.05, 1e-5)
    )
    assert len(loose) < len(tight) and loose[-1].objective > tight[-1].objective


def test_constant_steps_are_the_printed_ones_and_may_raise_w(task):
    """[L04] (35) and Figure 4: theta - eta grad W with one eta, whatever becomes of W."""
    x, _, signs, pool = task
    options = DescentOptions(step="constant", length=2.0, iterations=30, tolerance=0.0)
    history = pairs.train_kernel(x, signs, pool, "llr", "diagonal", options).history
    objectives = np.array([line.objective for line in history])
    assert (np.diff(objectives) > 0).any() and all(line.accepted for line in history)
    assert len({line.step for line in history[1:]}) == 1
    one = pairs.train_kernel(x, signs, pool, "llr", "diagonal", replace(options, iterations=1))
    two = pairs.train_kernel(x, signs, pool, "llr", "diagonal", replace(options, iterations=2))
    assert np.linalg.norm(one.theta - to_vector(pool, pool)) == pytest.approx(2.0)
    assert np.linalg.norm(two.theta - one.theta) != pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("features", [0, 3])
@pytest.mark.parametrize("metric", METRICS)
def test_the_first_step_goes_down_the_slope_of_w_as_solved_anew(task, metric, features):
    """Where the machine is the best for its kernel, W falls as if its coefficients were fixed ([L04] (36)): a constant
    step is along finite differences of the solved W, of the scores that are kept."""
    x, _, signs, pool = task
    space, start, ridge = "llr-mean-var", to_vector(pool, pool), 1e-2  # one Gaussian a class: the whole G is singular
    keep = select_features(score(pool, x, space)[0], signs, features or 9)

    def solved(vector):
        phi = score(from_vector(vector, pool), x, space)[0][:, keep]
        held = measure(phi, metric, blocks(space, pool.sizes, 2)[keep], ridge)
        return solve_binary(held.factor(phi), signs).objective

    def step(features):
        options = DescentOptions(step="constant", length=1e-3, iterations=1, features=features, ridge=ridge)
        return (start - pairs.train_kernel(x, signs, pool, space, metric, options).theta) / 1e-3

    slope = numeric(solved, start, step=1e-3)
    slope /= np.linalg.norm(slope)
    np.testing.assert_allclose(step(features), slope, atol=1e-4)
    assert np.abs(step(3 - features) - slope).max() > 1e-2  # the deliberate mistake: the slope of other scores


def test_kept_features_are_those_of_the_largest_fisher_ratios(task):
    x, _, signs, pool = task
    made = pairs.train_kernel(x, signs, pool, "llr-mean-var", "block", DescentOptions(features=3, iterations=2))
    ratios = fisher_ratios(score(pool, x, "llr-mean-var")[0], signs)
    assert sorted(np.flatnonzero(made.weights[:, 0])) == sorted(np.argsort(-ratios)[:3])
    assert 3 <= made.history[-1].support <= len(x)


def test_one_model_of_both_classes(task):
    x, y, _, pool = task
    before, after = pairs.train_pairs(x, y, pool, "fisher1", "diagonal", DescentOptions(iterations=5))
    assert before.mixtures[0].n_states == 1 and before.mixtures[0].n_gaussians == pool.n_gaussians
    again = pairs.from_arrays("fisher1", pairs.to_arrays(after))
    np.testing.assert_array_equal(again.decide(x), after.decide(x))
    assert errors(after, x, y) < 35


def test_scores_that_overflow_count_as_a_rise():
    def scores(theta):
        phi = np.array([[1.0], [-1.0], [0.5], [-0.5]]) if theta[0] == 0 else np.full((4, 1), np.nan)
        return phi, lambda d_phi: np.ones(1)

    made = train(scores, np.zeros(1), np.array([1, -1, 1, -1]), DescentOptions(iterations=3))
    assert made.theta[0] == 0 and not any(line.accepted for line in made.history[1:])


def test_artificial_task_reaches_the_published_errors():
    """[L04] Table 3, likelihood ratio: 22.8 -> 10.4 with one Gaussian a class, 10.2 -> 9.3 with two."""
    final = {1: [], 2: []}
    for seed in range(2):
        rng = np.random.default_rng([0, seed])
        x, y = artificial.sample(rng, 1000)
        x_test, y_test = artificial.sample(rng, 20000)
        for mixtures in final:
            pool = fit_mixtures(x, y, mixtures, np.random.default_rng(seed))
            before, after = pairs.train_pairs(x, y, pool, "llr", "diagonal", DescentOptions(iterations=1000))
            final[mixtures].append(errors(after, x_test, y_test))
            assert final[mixtures][-1] < errors(before, x_test, y_test)
    assert np.mean(final[1]) <= 12.5 and np.mean(final[2]) <= 10.2


def test_bayes_error_of_the_artificial_task():
    x, y = artificial.sample(np.random.default_rng(3), 400_000)
    assert 100 * (artificial.bayes(x) != y).mean() == pytest.approx(9.35, abs=0.1)


@pytest.fixture(scope="module")
def vowels(corpora, tmp_path_factory):
    text = (corpora / "deterding" / "vowel-context.data").read_text()
    rows = [line.replace(",", " ").split() for line in text.splitlines()]
    lines = [["train" if row[0] == "0" else "test", row[1], row[13], *row[3:13]] for row in rows]
    header = ["split", "speaker", "class", *(f"f{d}" for d in range(10))]
    path = tmp_path_factory.mktemp("vowels") / "vowels.csv"
    path.write_text("\n".join(",".join(line) for line in [header, *lines]) + "\n")
    return read_samples(path)


def test_deterding_one_gaussian(vowels):
    """[L04] Table 5: ML 40.0 / 55.8, svm-llr 58.0 -> 47.4 on test."""
    train_set, test_set = vowels["train"], vowels["test"]
    pool = fit_mixtures(train_set.x, train_set.y, 1, np.random.default_rng(0), tied=True)
    for part, expected in ((train_set, 40.0), (test_set, 55.8)):
        wrong = 100 * (log_mixtures(pool, part.x).argmax(1) != part.y).mean()
        assert wrong == pytest.approx(expected, abs=0.1)
    lines = []
    before, after = pairs.train_pairs(
        train_set.x, train_set.y, pool, "llr", "diagonal", DescentOptions(), lambda pair, line: lines.append(line)
    )
    assert errors(before, test_set.x, test_set.y) == pytest.approx(57.8, abs=0.7)
    assert errors(after, test_set.x, test_set.y) <= 47.5
    assert errors(after, train_set.x, train_set.y) < 3.0
    assert all(line.change <= 0 for line in lines) and sum(line.iteration == 0 for line in lines) == 55


def test_system_survives_its_file_form(task):
    x, y, _, pool = task
    before, after = pairs.train_pairs(x, y, pool, "llr-mean", "diagonal", DescentOptions(iterations=3))
    again = pairs.from_arrays("llr-mean", pairs.to_arrays(after))
    np.testing.assert_array_equal(again.decide(x), after.decide(x))
    assert not np.array_equal(before.decide(x), after.decide(x))


def test_joint_training_lowers_w_and_moves_the_mixtures():
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(3), 40)
    x = rng.normal(size=(120, 2)) + 1.5 * np.eye(3)[y][:, :2]
    pool = fit_mixtures(x, y, 2, rng, tied=True)
    options = DescentOptions(iterations=15, length=0.1)
    made = pairs.train_kernel(x, y, pool, "ll", "diagonal", options, solve_all)
    objectives = [line.objective for line in made.history]
    assert (np.diff(objectives) <= 0).all() and objectives[-1] < 0.99 * objectives[0]
    still = pairs.train_kernel(x, y, pool, "ll", "diagonal", replace(options, iterations=0), solve_all)
    np.testing.assert_array_equal(still.theta, to_vector(pool, pool))


@pytest.fixture(scope="module")
def two_words():
    """Two words whose models differ little: ``(models, frames, signs)``."""
    rng = np.random.default_rng(7)
    hmms = flat_start(whole_words(["a", "b"]), 3, np.zeros(2), np.ones(2))
    models = [word_model(hmms, word) for word in ("a", "b")]
    signs = np.where(np.arange(60) % 2, 1, -1)
    lengths = rng.integers(6, 12, 60)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    x = np.concatenate([rng.normal(size=(n, 2)) + [0.3 * s, 0.0] * np.linspace(-1, 1, n)[:, None]
                        for n, s in zip(lengths, signs)])  # fmt: skip
    models[1] = replace(models[1], pool=replace(models[1].pool, means=models[1].pool.means + 0.05))
    return models, Frames(x, bounds, np.empty((len(x), 0))), signs


def test_word_pair_kernel_lowers_w_and_errors(two_words):
    """The machine sees more in the derivatives than the ratio alone shows."""
    models, frames, signs = two_words
    for features in (0, 5):
        before, after, how = train_word_pair(
            models, frames, signs, "llr-mean", DescentOptions(iterations=25, features=features)
        )
        objectives = [line.objective for line in how.history]
        assert (np.diff(objectives) <= 0).all() and objectives[-1] < 0.9 * objectives[0]
        assert np.count_nonzero(after.weights) == (features or 13)
        wrong = [int((np.sign(one.decide(models, frames, "llr-mean", True)) != signs).sum()) for one in (before, after)]
        assert [how.history[0].train_errors, how.history[-1].train_errors] == wrong
        assert wrong[1] <= wrong[0] < 30


@pytest.mark.parametrize("window, per_frame", [(None, True), (0, True), (None, False)])
@pytest.mark.parametrize("metric", METRICS)
def test_words_are_trained_in_the_metric_window_and_scale_asked_for(two_words, metric, window, per_frame):
    """The mistake is an option that training forgets: W and its slope are then those of another."""
    (models, frames, signs), space = two_words, "llr-mean"
    options = DescentOptions(step="constant", length=1e-3, iterations=1, ridge=1e-2)
    asked = {"metric": metric, "window": window, "per_frame": per_frame}
    _, after, how = train_word_pair(models, frames, signs, space, options, **asked)
    phi, pullback = hmm_scorespace.score(models, frames, space, window, per_frame)
    held = measure(phi, metric, hmm_scorespace.blocks(models, space), 1e-2)
    machine = solve_binary(held.factor(phi), signs)
    assert how.history[0].objective == pytest.approx(machine.objective, rel=1e-9)
    gradients = pullback(score_gradient(phi, machine.coefficients, held))
    slope = hmm_scorespace.gradient_to_vector(models, models, gradients)
    taken = (hmm_scorespace.to_vector(models, models) - after.theta) / 1e-3
    np.testing.assert_allclose(taken, slope / np.linalg.norm(slope), atol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_decisions_on_raw_scores_are_the_machine_s_under_the_metric(task, metric):
    """The mistake is weights of another metric: W then is right, and what is decided is not."""
    x, _, signs, pool = task
    space, ridge = "llr-mean-var", 1e-2
    made = pairs.train_kernel(x, signs, pool, space, metric, DescentOptions(iterations=3, ridge=ridge))
    ends = (to_vector(pool, pool), made.initial_weights, made.initial_bias), (made.theta, made.weights, made.bias)
    for theta, weights, bias in ends:
        phi = score(from_vector(theta, pool), x, space)[0]
        z = measure(phi, metric, blocks(space, pool.sizes, 2), ridge).factor(phi)
        machine = solve_binary(z, signs)
        np.testing.assert_allclose(phi @ weights + bias, z @ machine.weights + machine.bias, atol=1e-6)


def test_metric_none_is_the_plain_inner_product(task):
    x, _, signs, pool = task
    made = pairs.train_kernel(x, signs, pool, "llr", "none", DescentOptions(iterations=0))
    phi, _ = score(pool, x, "llr")
    plain = solve_binary(phi, signs, 1.0)
    assert made.history[0].objective == pytest.approx(plain.objective, rel=1e-8)
    assert partial(measure, kind="none")(phi).variances.tolist() == [1.0]
