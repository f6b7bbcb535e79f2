"""Hybrid training: exact gradients, objectives against their definition, learning, resuming, refusals."""

from dataclasses import replace

import numpy as np
import pytest

from margo.classify import gmm, hybrid
from margo.classify.gmm import GmmOptions, log_joint
from margo.classify.hybrid import HybridOptions
from margo.errors import MargoError


def case(seed=0, classes=3, N=30, D=5, mixtures=2, covariance="full"):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(classes, D, D)) / 2
    x = np.concatenate([rng.normal(size=(N, D)) @ mix[c] + 0.7 * c for c in range(classes)])
    y = np.repeat(np.arange(classes), N)
    model, _ = gmm.fit(x, y, GmmOptions(mixtures=mixtures, covariance=covariance, ridge=0.05), rng)
    return model, x, y


@pytest.mark.parametrize("objective", ["ll", "ll-lm", "ll-cll", "lm", "cll"])
@pytest.mark.parametrize("precision", [False, True])
@pytest.mark.parametrize("unlabelled", [False, True])
def test_gradient_by_central_differences(objective, precision, unlabelled):
    model, x, y = case(N=8, D=4)
    options = HybridOptions(objective=objective, precision=precision, rank=2, margin=3.0, generative=0.3, sharpness=2.0)
    if unlabelled:
        y = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    flat, layout = hybrid.pack(model, options, np.float64)
    flat += 0.05 * np.random.default_rng(1).normal(size=flat.shape)
    kappa = 0.4 if unlabelled else 1.0
    _, gradient = hybrid.loss_gradient(flat, layout, x, y, options, kappa)
    step = 1e-5
    numeric = np.empty_like(flat)
    for i in range(len(flat)):
        values = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[i] += sign * step
            values.append(hybrid.loss_gradient(moved, layout, x, y, options, kappa)[0])
        numeric[i] = (values[0] - values[1]) / (2 * step)
    assert np.abs(numeric - gradient).max() < 1e-5 * max(1.0, np.abs(gradient).max())
    assert np.abs(gradient).max() > 1e-2


@pytest.mark.parametrize("objective", ["ll-lm", "cll"])
@pytest.mark.parametrize("unlabelled", [False, True])
def test_gradient_of_samples_with_gaps(objective, unlabelled):
    """The loss is that of the marginals of what was observed, and the gradient its derivative."""
    model, x, y = case(N=8, D=4)
    rng = np.random.default_rng(2)
    x[rng.random(x.shape) < 0.35] = np.nan
    x[np.isnan(x).all(axis=1), 0] = 0.0
    y = np.where(np.arange(len(y)) % 3 == 0, -1, y) if unlabelled else y
    options = HybridOptions(objective=objective, precision=False, rank=2, margin=3.0, generative=0.3, sharpness=2.0)
    flat, layout = hybrid.pack(model, options, np.float64)
    flat += 0.05 * rng.normal(size=flat.shape)
    loss, gradient = hybrid.loss_gradient(flat, layout, x, y, options, 0.4)
    want = hybrid.criterion(log_joint(hybrid.unpack(flat, layout), x), y, options, 0.4)[0]
    assert loss == pytest.approx(want, rel=1e-10)
    for i in range(len(flat)):
        values = []
        for sign in (1, -1):
            moved = flat.copy()
            moved[i] += sign * 1e-5
            values.append(hybrid.loss_gradient(moved, layout, x, y, options, 0.4)[0])
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(gradient[i], abs=1e-6, rel=1e-5)
    whole = np.where(np.isnan(x), 0.0, x)
    parts = [densities(layout, *arguments, whole) for densities in (hybrid.complete, hybrid.with_gaps)
             for _, _, means, raw, factor in [layout.views(flat)]
             for arguments in [(means, np.logaddexp(0, raw) + layout.ridge, factor)]]  # fmt: skip
    np.testing.assert_allclose(parts[0][0], parts[1][0], rtol=1e-9)
    g = rng.normal(size=parts[0][0].shape)
    for one, other in zip(parts[0][1](g), parts[1][1](g)):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_training_from_samples_with_gaps():
    """A third of the values gone: margins still lower the error of EM on the same gaps."""
    model, x, y = case(N=150, mixtures=1)
    holes = x.copy()
    holes[np.random.default_rng(0).random(x.shape) < 0.3] = np.nan
    holes[np.isnan(holes).all(axis=1), 0] = 0.0
    start, _ = gmm.fit(holes, y, GmmOptions(covariance="full", ridge=0.05), np.random.default_rng(0))
    options = HybridOptions(rank=2, epochs=8, rate=0.01, batch=30, margin=5.0, generative=0.05, precision=False)
    trained, reports = hybrid.fit(start, holes, y, options)
    before, after = ((log_joint(m, holes).argmax(1) != y).mean() for m in (start, trained))
    assert after < before and reports[-1]["objective"] > reports[0]["objective"]


@pytest.mark.parametrize("precision", [False, True])
def test_loss_is_the_printed_objective(precision):
    """(9) and (16) from log p(x, c) of the unpacked classifier, with a soft maximum as sharp as a maximum."""
    model, x, y = case()
    y = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    options = HybridOptions(rank=3, margin=2.0, generative=0.3, sharpness=500.0, precision=precision)
    flat, layout = hybrid.pack(model, options, np.float64)
    loss, _ = hybrid.loss_gradient(flat, layout, x, y, options, kappa=0.4)
    joint = log_joint(hybrid.unpack(flat, layout), x)
    want = 0.0
    for row, c in zip(joint, y):
        if c < 0:
            want -= 0.3 * 0.6 * np.logaddexp.reduce(row)
        else:
            margin = row[c] - np.delete(row, c).max()
            want += -0.3 * 0.4 * row[c] + 0.7 * max(0.0, 2.0 - margin)
    assert loss == pytest.approx(want / len(y), rel=1e-3)


def test_float32_gradient_is_close():
    model, x, y = case()
    options = HybridOptions(rank=2)
    flat, layout = hybrid.pack(model, options, np.float64)
    exact = hybrid.loss_gradient(flat, layout, x, y, options)[1]
    single = hybrid.loss_gradient(flat.astype(np.float32), layout, x.astype(np.float32), y, options)[1]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=2e-4 * np.abs(exact).max())


@pytest.mark.parametrize("precision", [False, True])
def test_packing_keeps_the_model(precision):
    model, x, _ = case()
    options = HybridOptions(rank=5, ridge=1e-6, precision=precision)
    flat, layout = hybrid.pack(model, options, np.float64)
    back = hybrid.unpack(flat, layout)
    np.testing.assert_allclose(log_joint(back, x), log_joint(model, x), atol=1e-2)
    again, _ = hybrid.pack(back, options, np.float64)
    np.testing.assert_allclose(log_joint(hybrid.unpack(again, layout), x), log_joint(back, x), atol=1e-6)


@pytest.mark.parametrize("objective", ["ll-lm", "ll-cll", "lm", "cll"])
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_training_lowers_loss_and_error(objective, covariance):
    model, x, y = case(N=150, covariance=covariance, mixtures=1)
    options = HybridOptions(objective=objective, rank=2, epochs=8, rate=0.01, batch=30, margin=5.0, generative=0.05)
    trained, reports = hybrid.fit(model, x, y, options)
    assert reports[-1]["objective"] > reports[0]["objective"]
    start = hybrid.unpack(*hybrid.pack(model, options))  # cutting down to low rank has its own price
    before, after = ((log_joint(m, x).argmax(1) != y).mean() for m in (start, trained))
    assert after < before
    assert (np.linalg.eigvalsh(trained.pool.covariances.dense()) > 0).all()
    assert trained.pool.covariances.factor.shape[2] == (2 if covariance == "full" else 0)


def test_pure_likelihood_only_climbs():
    model, x, y = case(N=100)
    options = HybridOptions(objective="ll", rank=2, epochs=10, rate=0.003, batch=50, precision=False)
    trained, _ = hybrid.fit(model, x, y, options)
    start = hybrid.unpack(*hybrid.pack(model, options))
    rows = np.arange(len(y))
    assert log_joint(trained, x)[rows, y].mean() > log_joint(start, x)[rows, y].mean() + 0.01


def test_adam_is_the_printed_one():
    """An epoch against Algorithm 1 of Kingma & Ba, with its two bias corrections, on the same batches."""
    model, x, y = case()
    options = HybridOptions(rank=2, epochs=1, batch=20, rate=0.01)
    state, layout = hybrid.begin(model, options)
    x, y = hybrid.prepare(x, y, 3)
    after, _ = hybrid.run_epoch(state, layout, x, y, options, 1, np.random.default_rng(5))
    order, theta, m, v = np.random.default_rng(5).permutation(len(x)), state.flat.copy(), 0.0, 0.0
    for t, at in enumerate(range(0, len(x), 20), start=1):
        rows = order[at : at + 20]
        g = hybrid.loss_gradient(theta, layout, x[rows], y[rows], options)[1].astype(float)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        theta = theta - (0.01 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)).astype(np.float32)
        if t == 1:  # the first step is as long as the rate wherever there is a slope
            np.testing.assert_allclose(np.abs(theta - state.flat)[np.abs(g) > 1e-3], 0.01, rtol=1e-2)
    np.testing.assert_allclose(after.flat, theta, atol=2e-4)
    assert np.abs(after.flat - state.flat).max() > 0.02


def test_an_interrupted_run_goes_on_exactly():
    model, x, y = case()
    options = HybridOptions(rank=2, epochs=4, batch=16)
    whole, _ = hybrid.fit(model, x, y, options, seed=3)
    xs, ys = hybrid.prepare(x, y, 3)
    state, layout = hybrid.begin(model, options)
    for epoch in (1, 2, 3, 4):  # each from the state alone, as after a restart
        copied = replace(state, flat=state.flat.copy(), moment=state.moment.copy())
        state, _, done = hybrid.advance(copied, layout, xs, ys, options, epoch, 3)
    assert done
    assert np.array_equal(hybrid.unpack(state.best, layout).pool.means, whole.pool.means)


def test_validation_chooses_the_epoch_and_patience_stops():
    model, x, y = case(N=60)
    options = HybridOptions(rank=2, epochs=30, rate=0.05, patience=2, objective="lm")
    trained, reports = hybrid.fit(model, x, y, options, validation=(x[::2], y[::2]))
    errors = [report["validation_error"] for report in reports]
    assert len(reports) < 30 and reports[-1]["best_epoch"] == int(np.argmin(errors)) + 1
    assert 100 * (log_joint(trained, x[::2]).argmax(1) != y[::2]).mean() == pytest.approx(min(errors))


def test_unlabelled_samples_help():
    rng = np.random.default_rng(0)
    D, N = 6, 600
    x = np.concatenate([rng.normal(0, 1, (N, D)), rng.normal(0.9, 1, (N, D))])
    y = np.repeat([0, 1], N)
    shown = np.concatenate([np.arange(8), N + np.arange(8)])
    model, _ = gmm.fit(x[shown], y[shown], GmmOptions(ridge=0.1), rng)
    hidden = np.full(2 * N, -1)
    hidden[shown] = y[shown]
    options = HybridOptions(epochs=15, rate=0.01, batch=100, generative=0.9, margin=2.0, labelled=0.5)
    few, _ = hybrid.fit(model, x[shown], y[shown], replace(options, batch=4))
    many, _ = hybrid.fit(model, x, hidden, options)
    error = {name: (log_joint(m, x).argmax(1) != y).mean() for name, m in (("few", few), ("many", many))}
    assert error["many"] < error["few"] - 0.03


def test_refusals():
    model, x, y = case()
    x[0, 0] = np.nan
    with pytest.raises(MargoError, match="1 training samples have missing values: .*--precision false"):
        hybrid.fit(model, x, y, HybridOptions())
    with pytest.raises(ValueError, match="--generative is 2"):
        HybridOptions(generative=2)
    x[0, 0] = 0.0
    with pytest.raises(MargoError, match=r"diverged in epoch \d+ .*lower --rate"), np.errstate(all="ignore"):
        hybrid.fit(model, 1e20 * x, y, HybridOptions(rank=2, rate=1e4))
