"""The one trainer on a small corpus of random features, by every criterion: the best model is kept, resuming changes
nothing, N-best lists stand in for the first search, and a criterion may come from anywhere."""

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp

from contests import feature_folders, task
from margo.errors import MargoError
from margo.estimate import mmi, paths
from margo.estimate.criterion import Criterion, PatienceOptions
from margo.estimate.lme import margins, region
from margo.estimate.lme.region import Lme, LmeOptions, next_radius
from margo.estimate.mmi import Mmi, MmiOptions
from margo.formats.models import read_model, write_model
from margo.model.grammar import weights_of, with_grammar
from margo.runtime import record, trainer
from margo.runtime.parallel import place
from margo.runtime.trainer import Training
from margo.tasks import speech, tuning
from runs import PICKING, RUNS, decoded_errors, go, lists, run_step, tried


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """As ``folders``, one word an utterance."""
    return feature_folders(tmp_path_factory.mktemp("words"), longest=1)


@pytest.mark.parametrize("name", PICKING)
def test_the_best_model_on_dev_is_kept(folders, tmp_path, name):
    reports, facts = go(folders, tmp_path / name, name, penalties=("none",))
    assert len(reports) == RUNS[name][2].get("iterations", 5) + 1
    assert all({"objective", "train_errors", "frames", "seconds"} <= set(report) for report in reports)
    errors = tried(reports)
    hmms = read_model(tmp_path / name / "model.npz")
    best = min(errors, key=errors.get)
    assert hmms.meta["criterion"] == {"lme": "lme-sdp"}.get(name, name) and hmms.meta["iteration"] == best
    assert facts["chosen"] == best and facts["cost"] == errors[best] < errors[0]
    assert reports[-1]["train_errors"] < reports[0]["train_errors"]


@pytest.mark.parametrize("stop_after", [None, 3, 4, 6])
def test_several_starts_are_trained_in_turn_and_the_best_of_all_is_kept(folders, tmp_path, stop_after, monkeypatch):
    """Also when it is killed at the last of a start's epochs, or the first of the next."""
    go(folders, tmp_path / "mce", "mce", penalties=("none",))
    again = {"also": (folders / "ml",), "init": tmp_path / "mce", "epochs": 3, "penalties": ("none",)}
    if stop_after:
        go(folders, tmp_path / "lme", "lme", stop_after=stop_after, monkeypatch=monkeypatch, **again)
    reports, facts = go(folders, tmp_path / "lme", "lme", **again)
    assert [report["start"] for report in reports] == [1] * 4 + [2] * 4
    errors = [report["dev_errors"] + report["dev_wrong"] for report in reports]
    best, last = int(np.argmin(errors)), reports[-1]
    mean = last.get("mean_dev_errors", np.inf) + last.get("mean_dev_wrong", np.inf)  # none where one was augmented
    average = (min(errors[:4]) + min(errors[4:])) / 2
    kept = mean < average and trainer.may_be_chance(mean, errors[best])
    assert facts["cost"] == (mean if kept else errors[best])
    if not kept:
        assert facts["chosen"] == best % 4 and facts["from"] == str((tmp_path / "mce", folders / "ml")[best // 4])
    alone = go(folders, tmp_path / "alone", "lme", **again | {"also": (), "init": folders / "ml"})[0]
    assert [report["objective"] for report in alone] == [report["objective"] for report in reports[4:]]


class Steps(Criterion):
    """From each start three steps; a step adds 1 to all means."""

    limit = 3

    def measure(self, hmms, memory, corpus, steps, final):
        return None, memory

    def report(self, stats, memory):
        return {"objective": 0.0}

    def update(self, hmms, stats, memory, corpus):
        return hmms.with_pool(replace(hmms.pool, means=hmms.pool.means + 1)), memory, {}


def test_the_mean_of_the_best_from_all_starts_is_kept_where_it_errs_less_than_they_do(folders):
    """Costs are distances of the means from a place between the starts' paths, so that only a mean comes near."""
    ml = read_model(folders / "ml" / "model.npz")
    starts = [ml.with_pool(replace(ml.pool, means=ml.pool.means + far)) for far in (-10.0, 4.0, 6.0)]

    def errors(place):
        return lambda hmms: (hmms, {"dev": float(np.abs(hmms.pool.means - ml.pool.means - place).max())})

    def ended(place):
        training = Training(Steps(PatienceOptions()), [lambda hmms=hmms: hmms for hmms in starts],
                            SimpleNamespace(seconds=0.0), errors(place))  # fmt: skip
        state, done, iteration = training.start(), False, 0
        while not done:
            iteration += 1
            state, report, done = training.advance(iteration, training.load(*training.save(state)))
        return state, report

    state, report = ended(1.0)  # the nearest from each start: -7, 4, 6, whose mean is 1
    assert state.source == 3 and state.cost == pytest.approx(0, abs=1e-9) == report["mean_dev"]
    assert np.allclose(state.best.pool.means, ml.pool.means + 1)
    state, report = ended(5.0)  # 5 itself is met on the way
    assert state.source == 1 and state.chosen == 1 and state.cost == pytest.approx(0, abs=1e-9)
    state, report = ended(12.0)  # -7, 7 and 9: 3 away at best, 9 on average; so is their mean
    assert state.source == 2 and state.cost == pytest.approx(3) and report["mean_dev"] == pytest.approx(9)
    state, report = ended(-1.0)  # -7, 4 and 6 are 6, 5 and 7 away, their mean 2
    assert state.source == 3 and state.cost == report["mean_dev"] == pytest.approx(2)
    assert trainer.may_be_chance(120, 100) and not trainer.may_be_chance(121, 100)


@pytest.mark.parametrize("mean, kept", [(40, True), (109, True), (110, False), (120, False)])
def test_a_mean_is_kept_below_the_average_of_the_starts_though_one_of_them_is_better(folders, mean, kept):
    """Two starts of 100 and 120 errors; the step changes nothing, so that the third model judged is their mean."""
    ml = read_model(folders / "ml" / "model.npz")
    moved = ml.with_pool(replace(ml.pool, means=ml.pool.means + 2))
    costs = {0.0: 100, 2.0: 120, 1.0: mean}

    class Still(Steps):
        limit = 0

    def errors(hmms):
        return hmms, {"dev": costs[round(float((hmms.pool.means - ml.pool.means).mean()), 6)]}

    training = Training(Still(PatienceOptions()), [lambda: ml, lambda: moved], SimpleNamespace(seconds=0.0), errors)
    state, done, iteration = training.start(), False, 0
    while not done:
        iteration += 1
        state, report, done = training.advance(iteration, training.load(*training.save(state)))
    assert report["mean_dev"] == mean and state.source == (2 if kept else 0) and state.cost == (mean if kept else 100)


@pytest.mark.parametrize("after, chosen", [((10, 10, 11), 0), ((11, 9, 9), 2)])
def test_a_start_that_is_not_beaten_on_dev_is_kept(folders, after, chosen):
    """As many errors as before are no reason to change a model; of later ones the first with the fewest is kept."""
    ml = read_model(folders / "ml" / "model.npz")
    costs = [10, *after]

    def errors(hmms):
        return hmms, {"dev": costs[round(float((hmms.pool.means - ml.pool.means).mean()))]}

    training = Training(Steps(PatienceOptions()), [lambda: ml], SimpleNamespace(seconds=0.0), errors)
    state, done, iteration = training.start(), False, 0
    while not done:
        iteration += 1
        state, _, done = training.advance(iteration, state)
    assert state.chosen == chosen and state.cost == min(costs)
    assert np.allclose(state.best.pool.means, ml.pool.means + chosen)


def test_each_start_has_its_own_patience(folders, tmp_path):
    """A start that is far behind the best of the one before is trained as long as it would be alone."""
    go(folders, tmp_path / "mce", "mce", penalties=("none",))
    same = {"epochs": 8, "patience": 2, "penalties": ("none",)}
    alone, _ = go(folders, tmp_path / "alone", "lme", **same)
    both, _ = go(folders, tmp_path / "both", "lme", init=tmp_path / "mce", also=(folders / "ml",), **same)
    assert [report["objective"] for report in both if report["start"] == 2] == [report["objective"] for report in alone]
    assert len(alone) > 3


def test_models_are_judged_under_penalties_near_their_own(folders, tmp_path):
    """As they will be used, since the best penalty is tuned in the end; the model kept has the one it did best with."""
    reports, _ = go(folders, tmp_path, "mce", iterations=2, check=1, penalties=("auto",))
    hmms, dev = read_model(folders / "ml" / "model.npz"), speech.read(folders / "dev")
    own = weights_of(hmms)["insertion_penalty"]
    with place(1, "", print) as where:
        counts = {value: sum(decoded_errors(with_grammar(hmms, insertion_penalty=value), dev).values())
                  for value in (own + step for step in tuning.NEAR)}  # fmt: skip
        kept, errors = tuning.judged(hmms, dev, where, tuning.WeightOptions())
        assert tuning.judged(hmms, dev, where, tuning.WeightOptions(penalties=("none",)))[0].meta == hmms.meta
    assert sum(errors.values()) == min(counts.values()) == tried(reports)[0] < counts[own]
    assert counts[weights_of(kept)["insertion_penalty"]] == min(counts.values())


def test_the_share_of_pairs_that_decides_narrows_by_the_epoch(folders, tmp_path):
    criterion = Lme(LmeOptions(nu=0.2, narrowing=0.5))
    memory, shares = criterion.begin(read_model(folders / "ml" / "model.npz")), []
    with place(1, "", print) as where:
        corpus = speech.Corpus(speech.read(folders / "train"), where, SimpleNamespace(say=print, log=print))
        hmms = read_model(folders / "ml" / "model.npz")
        for _ in range(3):
            shares.append(memory["nu"])
            hmms, memory, _ = criterion.update(hmms, criterion.search(hmms, corpus), memory, corpus)
    assert shares == [0.2, 0.1, 0.1] and memory["nu"] == region.LEAST_NU
    assert Lme(LmeOptions(hard=True)).begin(hmms)["nu"] == 0


@pytest.mark.parametrize("wrong, nu, share", [(0, 1.0, 0.1), (1, 1.0, 0.2), (4, 1.0, 0.8), (9, 1.0, 1.0), (9, 0.3, 0.3),
                                              (0, 0.05, 0.05)])  # fmt: skip
def test_a_start_that_gets_few_tokens_wrong_begins_with_fewer_pairs(folders, monkeypatch, wrong, nu, share):
    """Twenty times the share of its wrong tokens, of a hundred; and only at the start."""
    hmms = read_model(folders / "ml" / "model.npz")
    found = SimpleNamespace(token_margins=np.where(np.arange(100) < wrong, -1.0, 1.0))
    monkeypatch.setattr(Lme, "search", lambda self, hmms, corpus: found)
    criterion = Lme(LmeOptions(nu=nu))
    memory = criterion.begin(hmms)
    assert criterion.measure(hmms, memory, None, 0, False)[1]["nu"] == pytest.approx(share)
    assert criterion.measure(hmms, memory, None, 1, False)[1]["nu"] == nu


def test_maximum_likelihood_keeps_the_last_model_and_says_what_dev_thinks(folders, tmp_path):
    reports, facts = go(folders, tmp_path, "ml")
    assert [report["mixtures"] for report in reports] == [1] * 6 + [2] * 4 + [4] * 4
    assert [report["scale"] for report in reports if "scale" in report] == pytest.approx([0.01, 0.1])
    assert facts["chosen"] == 14 and facts["dev"]["strings"] == 60 and not tried(reports)
    assert (read_model(tmp_path / "model.npz").pool.sizes == 4).all()
    for one, other in zip(reports[2:], reports[3:]):
        assert other["mixtures"] > one["mixtures"] or other["objective"] > one["objective"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("stop_after", [1, 2, 4])
def test_resumed_runs_end_with_the_same_bytes(folders, tmp_path, name, stop_after, monkeypatch):
    whole, _ = go(folders, tmp_path / "whole", name)
    go(folders, tmp_path / "broken", name, stop_after=stop_after, monkeypatch=monkeypatch)
    assert len(list((tmp_path / "broken").glob("iter_*.npz"))) == 1
    resumed, _ = go(folders, tmp_path / "broken", name)
    assert (tmp_path / "broken" / "model.npz").read_bytes() == (tmp_path / "whole" / "model.npz").read_bytes()
    untimed = [[{key: value for key, value in line.items() if not key.endswith("seconds")} for line in lines]
               for lines in (whole, resumed)]  # fmt: skip
    assert untimed[0] == untimed[1]


@pytest.mark.parametrize("name", ["mce", "lme"])
def test_a_memory_that_is_lost_shows(folders, tmp_path, name, monkeypatch):
    """The twin of the test above: a resumed run that forgot what its criterion knew ends otherwise."""
    go(folders, tmp_path / "whole", name, penalties=("none",))
    go(folders, tmp_path / "broken", name, stop_after=2, monkeypatch=monkeypatch, penalties=("none",))
    load = trainer.Training.load

    def forgetful(self, meta, arrays):
        state = load(self, meta, arrays)
        return replace(state, memory={**self.criterion.begin(state.hmms), "found_with": state.hmms})

    monkeypatch.setattr(trainer.Training, "load", forgetful)
    go(folders, tmp_path / "broken", name, penalties=("none",))
    models = [read_model(tmp_path / kind / "model.npz").pool.means for kind in ("whole", "broken")]
    assert not np.array_equal(*models)


@pytest.mark.parametrize("name", ["mce", "lme"])
def test_other_jobs_same_bytes(folders, tmp_path, name):
    go(folders, tmp_path / "one", name)
    go(folders, tmp_path / "two", name, nj=2)
    assert (tmp_path / "one" / "model.npz").read_bytes() == (tmp_path / "two" / "model.npz").read_bytes()


@pytest.mark.parametrize("name", PICKING)
def test_without_dev_the_training_data_pick(folders, tmp_path, name):
    reports, facts = go(folders, tmp_path / name, name, dev=False)
    refresh = RUNS[name][2].get("refresh", 1)
    sign = 1 if name == "mce" else -1
    values = {report["iteration"] - 1: ((name == "lme") * report["train_errors"], sign * report["objective"])
              for report in reports if (report["iteration"] - 1) % refresh == 0}  # fmt: skip
    best = min(values, key=values.get)
    assert read_model(tmp_path / name / "model.npz").meta["iteration"] == best == facts["chosen"]
    assert not tried(reports)


@pytest.mark.parametrize("method, margin", [("auto", "objective"), ("gd", "margin_min")])
def test_without_dev_and_without_training_errors_lme_still_chooses_by_margins(tmp_path, method, margin):
    """As on [LJ07]'s E-set, where MCE leaves no training error: the first model is not the best for want of any."""
    few = feature_folders(tmp_path, blur=1.5, train=12, longest=1)
    go(few, tmp_path / "start", "lme", dev=False, hard=True, misrecognised=True, epochs=5)
    reports, facts = go(few, tmp_path / "lme", "lme", init=tmp_path / "start", dev=False, method=method, hard=True)
    assert {report["train_errors"] for report in reports} == {0}
    margins = [report[margin] for report in reports]
    assert facts["chosen"] == int(np.argmax(margins)) > 0


def test_patience_ends_a_run_that_no_longer_improves(folders, tmp_path):
    reports, facts = go(folders, tmp_path / "all", "mm", iterations=12, check=1)
    errors = list(tried(reports).values())
    short, ended = go(folders, tmp_path / "few", "mm", iterations=12, check=1, patience=2)
    records = [n for n in range(len(errors)) if errors[n] < min(errors[:n], default=np.inf)]
    idle = [next((r for r in records if r > n), len(errors)) - n - 1 for n in records]
    stop = next(n for n, count in zip(records, idle) if count >= 2)
    assert len(short) == stop + 3 < len(reports)
    assert ended["chosen"] == stop


@pytest.mark.parametrize("name", PICKING)
def test_a_run_that_ends_early_keeps_the_model_that_was_best_and_not_the_last(folders, tmp_path, name):
    """What is written makes on dev the very errors that it was kept for."""
    most = {"epochs": 40} if name == "lme" else {"iterations": 40, "refresh": 1, "check": 1}
    most.pop("refresh" if name == "mmi" else "", None)
    reports, facts = go(folders, tmp_path, name, patience=2, penalties=("none",), **most)
    errors = tried(reports)
    assert facts["chosen"] == len(reports) - 3 == min(errors, key=errors.get) and len(reports) < 41
    made = decoded_errors(read_model(tmp_path / "model.npz"), speech.read(folders / "dev"))
    assert made.items() <= reports[facts["chosen"]].items() and sum(made.values()) == facts["cost"]


def test_a_start_that_nothing_betters_is_told(folders, tmp_path):
    _, facts = go(folders, tmp_path, "mm", iterations=1, refresh=1, check=1, growth=1e9)
    assert facts["chosen"] == 0
    start, kept = (read_model(folder / "model.npz").pool for folder in (folders / "ml", tmp_path))
    np.testing.assert_array_equal(start.means, kept.means)


def test_mmi_steps_more_carefully_once_the_objective_has_fallen():
    hmms, data = task(3, "loop", utterances=10)
    criterion = Mmi(MmiOptions())
    stats = mmi.accumulate(hmms, data)
    _, rose, free = criterion.update(hmms, stats, {"objective": stats.objective - 1, "caution": 1.0})
    _, fell, careful = criterion.update(hmms, stats, {"objective": stats.objective + 1, "caution": 1.0})
    assert (rose["caution"], fell["caution"]) == (1.0, 2.0)
    assert rose["objective"] == fell["objective"] == stats.objective
    assert careful["moved"] < free["moved"]


# -- N-best lists ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["folders", "words"])
@pytest.mark.parametrize("name", ["mce", "mm", "lme"])
def test_nbest_lists_stand_in_for_the_first_search(root, kind, tmp_path, name, request, monkeypatch):
    corpus, competitors = request.getfixturevalue(kind), 2  # of three words
    nbest = lists(root, corpus, tmp_path / "nbest", n=3)
    searches = []
    find = paths.nbest if kind == "folders" else None
    if find:
        monkeypatch.setattr(paths, "nbest", lambda *arguments: searches.append(1) or find(*arguments))
    go(corpus, tmp_path / "searched", name, competitors=competitors)
    once = len(searches)
    go(corpus, tmp_path / "listed", name, competitors=competitors, nbest=nbest)
    assert (tmp_path / "listed" / "model.npz").read_bytes() == (tmp_path / "searched" / "model.npz").read_bytes()
    if find:
        assert once - (len(searches) - once) == 130, "the first search looked for no string of the 130 utterances"


def test_lists_that_do_not_fit_are_refused(root, folders, words, tmp_path):
    nbest = lists(root, folders, tmp_path / "nbest")
    with pytest.raises(MargoError, match=r"5 strings an utterance, --competitors 5 needs 6"):
        go(folders, tmp_path / "a", "mce", nbest=nbest, competitors=5)
    with pytest.raises(MargoError, match=r"lists of .*train, which is not what .*words.*/train is now"):
        go(words, tmp_path / "b", "mce", nbest=nbest, init=folders / "ml")
    hmms = read_model(folders / "ml" / "model.npz")
    write_model(tmp_path / "other" / "model.npz", replace(hmms, pool=replace(hmms.pool, means=hmms.pool.means + 1)))
    record.write(tmp_path / "other", "train_ml", [], None, {}, ["model.npz"], 0.0, {})
    with pytest.raises(MargoError, match=r"lists of .*/ml, which is not what .*other is now"):
        go(folders, tmp_path / "c", "mce", nbest=nbest, init=tmp_path / "other")


# -- The trust region of large-margin training -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def harder(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"), blur=0.8)


@pytest.mark.parametrize("method", ["auto", "gd"])
def test_margins_measured_anew_rise_in_every_epoch(harder, tmp_path, method):
    reports, facts = go(harder, tmp_path, "lme", method=method, narrowing=1.0)
    assert len(reports) == 6 and read_model(tmp_path / "model.npz").meta["criterion"] in ("lme-sdp", "lme-gd")
    for one, other in zip(reports, reports[1:]):
        # What is climbed is what judges: the value at the start of an epoch, as predicted and as measured anew.
        assert one["before"] == pytest.approx(one["objective"]) and one["predicted"] > one["before"]
        assert one["reached"] > one["before"] and one["radius"] > 0
        if method == "auto":  # all tokens and one function: an epoch begins where the last one ended
            assert other["objective"] == pytest.approx(one["reached"])
        assert {"tokens", "margin_mean", "predicted", "dev_errors", "dev_wrong"} <= set(one)
    assert reports[-1]["train_errors"] < reports[0]["train_errors"] + 5
    assert facts["cost"] == min(tried(reports).values())
    spread, gains = json.loads((tmp_path / "plots.json").read_text())
    assert spread["series"][0]["x"] == [0, 1, 2, 3, 4, 5]
    assert [line["y"] for line in gains["series"]] == [
        [report[key] for report in reports[:-1]] for key in ("before", "predicted", "reached")
    ]


def test_lme_gd_climbs_and_is_judged_by_one_function(harder, tmp_path, monkeypatch):
    """-1/beta log mean exp(-beta margin) of the support's pairs, by hand: before a step, as predicted, measured anew,
    and in the trust ratio that the next ball follows."""
    epochs, solved, searched = [], [], []

    def solve(self, problem, beta, inner=Lme.solve):
        shift, widths, facts = inner(self, problem, beta)
        solved.append((problem, beta, shift, widths))
        return shift, widths, facts

    def search(self, hmms, corpus, inner=Lme.search):
        searched.append(inner(self, hmms, corpus))
        return searched[-1]

    def update(self, hmms, pairs, memory, corpus, inner=Lme.update):
        after = inner(self, hmms, pairs, memory, corpus)
        epochs.append((*solved[-1], searched[-1].margins, memory, *after[1:]))
        return after

    for name, function in (("solve", solve), ("search", search), ("update", update)):
        monkeypatch.setattr(Lme, name, function)
    reports, _ = go(harder, tmp_path, "lme", method="gd", nu=0.1)
    assert len(epochs) == 5
    for (problem, beta, shift, widths, anew, before, after, facts), report in zip(epochs, reports):
        values = [-logsumexp(-beta * each, b=1 / len(each)) / beta
                  for each in (problem.margins, margins(problem, shift, widths), anew)]  # fmt: skip
        assert [facts[key] for key in ("before", "predicted", "reached")] == pytest.approx(values, rel=1e-5)
        assert report["objective"] == pytest.approx(values[0])
        assert beta * problem.margins.std() == pytest.approx(before["sharpness"])
        assert after["sharpness"] > before["sharpness"]
        gained = (values[2] - values[0]) / (values[1] - values[0])
        assert after["radius"] == pytest.approx(next_radius(facts["radius"], gained))


def contrary(self, problem, beta, solve=Lme.solve):
    """The solver's answer turned round: a step that does not pay."""
    shift, widths, facts = solve(self, problem, beta)
    return -shift, widths, facts


def test_a_step_that_does_not_pay_is_taken_back_and_the_ball_halved(harder, tmp_path, monkeypatch):
    """Steps uphill only: every ball fails and the start is what remains."""
    monkeypatch.setattr(Lme, "solve", contrary)
    reports, facts = go(harder, tmp_path, "lme")
    assert len(reports) == 1 and facts["chosen"] == 0 and reports[0]["reached"] <= reports[0]["objective"]
    assert reports[0]["radius"] == pytest.approx(region.START_RADIUS / 2**4)


@pytest.mark.parametrize("reject, epochs", [(False, 3), (True, 0)])
def test_a_given_radius_stays_and_steps_are_taken_as_they_are_unless_rejected(
    harder, tmp_path, monkeypatch, reject, epochs
):
    monkeypatch.setattr(Lme, "solve", contrary)
    reports, facts = go(harder, tmp_path, "lme", radius="0.4", reject=reject, epochs=3)
    assert len(reports) == epochs + 1 and {one["radius"] for one in reports if "radius" in one} == {0.4}
    assert reports[0]["reached"] < reports[0]["before"]


def test_the_radius_follows_what_the_last_step_gained():
    assert [next_radius(1.0, gained) for gained in (0.9, 0.6, 0.1)] == [1.5, 1.0, 0.6]


def test_dev_judges_the_mean_of_the_last_epochs_too(harder, tmp_path):
    """Memory of three epochs' models; their mean is a candidate, and the fewest errors of the two are reported."""
    criterion = Lme(LmeOptions(average=3))
    start = read_model(harder / "ml" / "model.npz")
    memory = criterion.begin(start)
    assert criterion.candidates(start, memory) == [start]
    pools = [replace(start.pool, means=start.pool.means + shift, covariances=start.pool.variances * 2**shift)
             for shift in (1.0, 2.0, 6.0)]  # fmt: skip
    models = [start.with_pool(pool) for pool in pools]
    for each in models:
        memory["recent"] = criterion.recent(memory["recent"], each)
    last, mean = criterion.candidates(models[-1], memory)
    assert last is models[-1] and np.allclose(mean.pool.means, start.pool.means + 3.0)
    assert np.allclose(mean.pool.variances, start.pool.variances * 2**3.0)
    reports, facts = go(harder, tmp_path, "lme", average=3, epochs=3)
    assert facts["cost"] == min(tried(reports).values())


def test_hard_margin_of_all_tokens_ends_without_train_errors(tmp_path):
    """A few single words are separable: the hard margin finds means that recognise every one of them."""
    few = feature_folders(tmp_path, blur=1.5, train=12, longest=1)
    reports, _ = go(few, tmp_path / "lme", "lme", hard=True, misrecognised=True, epochs=8)
    assert reports[0]["objective"] < 0
    assert all(other["objective"] > one["objective"] for one, other in zip(reports, reports[1:]))
    assert reports[-1]["train_errors"] == 0 and reports[-1]["margin_min"] > 0


def test_no_token_to_start_from_is_told(folders, tmp_path):
    with pytest.raises(MargoError, match="no training token has a margin of 0 or more up to 1e-09.*raise --threshold"):
        go(folders, tmp_path, "lme", hard=True, threshold=1e-9)


@pytest.mark.parametrize(
    "name, value", [("radius", "0"), ("radius", "wide"), ("tokens", "0"), ("nu", 0.0), ("epochs", 0)]
)
def test_bad_options_say_what_to_give(name, value):
    with pytest.raises(ValueError, match=f"--{name} is {value}, expected "):
        LmeOptions(**{name: value})


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"), blur=0.8, train=40)


def sweep(root, folders, out, **options):
    run_step(root, "sweep_radius", out, **{"data": folders / "train", "dev": folders / "dev", "init": folders / "ml",
                                           "radii": (0.01, 0.3), "epochs": 2, **options})  # fmt: skip
    return json.loads((out / "sweep.json").read_text())


def test_sweep_of_radii(root, few, tmp_path):
    """Accuracies of all sets, as train_lme with that radius would have them; dev chooses, and test does not."""
    swept = sweep(root, few, tmp_path / "sweep", test=few / "train")
    small, large = swept["curves"]
    reports, _ = go(few, tmp_path / "lme", "lme", radius="0.3", epochs=2, average=1, penalties=("none",))
    errors = tried(reports)
    epoch = min((1, 2), key=errors.get)  # the start is no epoch of any radius
    right = [round(100 * (1 - report["dev_wrong"] / 60), 3) for report in reports]
    assert large["accuracy"]["dev"] == right and len(set(right)) > 1
    assert (large["epoch"], large["cost"]) == (epoch, errors[epoch])
    assert small["accuracy"]["dev"][0] == right[0] and small["accuracy"]["train"] == small["accuracy"]["test"]
    best = min((small, large), key=lambda curve: curve["cost"])
    assert swept["chosen_on"] == "dev" and (swept["best"]["radius"], swept["best"]["epoch"]) == (
        best["radius"], best["epoch"])  # fmt: skip
    assert swept["best"]["accuracy"]["dev"] == best["accuracy"]["dev"][best["epoch"]]
    assert swept["start"]["dev"] == right[0]
    against, *by_epoch = json.loads((tmp_path / "sweep" / "plots.json").read_text())
    assert [line["name"] for line in against["series"]] == ["train", "dev", "test"] and against["x_log"]
    assert against["series"][1]["y"] == [curve["accuracy"]["dev"][curve["epoch"]] for curve in (small, large)]
    assert [plot["title"].split()[2] for plot in by_epoch] == ["train", "dev", "test"]
    assert by_epoch[1]["series"][1] == {"name": "0.3", "x": [0, 1, 2], "y": right}
    assert all("accuracy" in plot["y_label"] for plot in (against, *by_epoch))


@pytest.mark.parametrize("reject, epochs", [(False, 3), (True, 0)])
def test_the_balls_of_a_sweep_stay_what_they_are(root, few, tmp_path, monkeypatch, reject, epochs):
    """Steps that do not pay are taken with a ball of the same size, or end the curve."""
    radii = []
    monkeypatch.setattr(Lme, "solve", contrary)
    monkeypatch.setattr(region, "make_problem", lambda pairs, gaussians, radius2, nu, make=region.make_problem:
                        radii.append(radius2 / gaussians) or make(pairs, gaussians, radius2, nu))  # fmt: skip
    swept = sweep(root, few, tmp_path, epochs=3, reject=reject)
    assert radii == pytest.approx([0.01] * max(epochs, 1) + [0.3] * max(epochs, 1))
    assert [len(curve["accuracy"]["dev"]) for curve in swept["curves"]] == [epochs + 1] * 2
    # With the larger ball every epoch is worse than the last; the start, better still, is none of them.
    assert swept["curves"][1]["epoch"] == min(epochs, 1)
    (against, *_) = json.loads((tmp_path / "plots.json").read_text())
    assert against["series"][1]["y"][1] == swept["curves"][1]["accuracy"]["dev"][min(epochs, 1)]


def test_a_sweep_without_dev_chooses_by_the_training_data(root, few, tmp_path):
    swept = sweep(root, few, tmp_path / "sweep", dev=None)
    assert swept["chosen_on"] == "train" and [*swept["best"]["accuracy"]] == ["train"]
    reports, _ = go(few, tmp_path / "lme", "lme", radius="0.3", epochs=2, dev=False)
    costs = [(report["train_errors"], -report["objective"]) for report in reports]
    small, large = swept["curves"]
    assert large["epoch"] == min((1, 2), key=costs.__getitem__) and int(large["cost"]) == costs[large["epoch"]][0]
    assert swept["best"]["radius"] == min((small, large), key=lambda curve: curve["cost"])["radius"]


# -- A criterion of one's own ------------------------------------------------------------------------------------------

PROGRAM = '''
"""Corrective training: utterances that are recognised wrongly pull their states' means towards them."""
from dataclasses import dataclass, replace
from functools import partial

from margo.estimate import ml
from margo.estimate.criterion import Criterion, IterationOptions
from margo.knobs import knob
from margo.model.grammar import recognition_graph
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.runtime.step import main
from margo.search.viterbi import viterbi
from margo.tasks.training import TrainingOptions, train


@dataclass(frozen=True)
class CorrectiveOptions(IterationOptions):
    rate: float = knob(0.3, "how far means go", above=0, most=1)


class Corrective(Criterion):
    name = "corrective"

    def begin(self, hmms):
        return {"first": hmms, "history": [], "rates": hmms.pool.log_weights * 0 + self.options.rate}

    def accumulate(self, memory, hmms, utterances):
        graph = recognition_graph(hmms)
        compiled = scorer(hmms.pool, graph.states)
        wrong = [one for one in utterances if viterbi(graph, log_likelihoods(compiled, one[1])).word_names != one[2]]
        stats = ml.accumulate(hmms, wrong)
        stats.objective, stats.errors, stats.utterances = -float(len(wrong)), len(wrong), len(utterances)
        return stats

    def update(self, hmms, stats, memory, corpus):
        seen = (stats.occupancy > 0)[:, None]
        goal = hmms.pool.means.copy()
        goal[seen[:, 0]] = stats.means()[seen[:, 0]]
        means = hmms.pool.means + memory["rates"][:, None] * (goal - hmms.pool.means)
        memory = {**memory, "history": [*memory["history"], stats.errors], "rates": 0.9 * memory["rates"]}
        return hmms.with_pool(replace(hmms.pool, means=means)), memory, {"history": memory["history"]}


@dataclass(frozen=True)
class Options(CorrectiveOptions, TrainingOptions):
    pass


if __name__ == "__main__":
    main(__doc__, Options, partial(train, Corrective))
'''


def test_a_criterion_in_somebodys_own_file_needs_nothing_else(folders, tmp_path):
    program = tmp_path / "train_corrective.py"
    program.write_text(PROGRAM)
    command = [sys.executable, program, "--data", folders / "train", "--dev", folders / "dev", "--init", folders / "ml",
               "--out", tmp_path / "out", "--iterations", "3", "--nj", "2"]  # fmt: skip
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in (tmp_path / "out" / "progress.jsonl").read_text().splitlines()]
    assert len(reports) == 4 and len(reports[2]["history"]) == 3
    facts = record.read(tmp_path / "out")
    assert facts["status"] == "ok" and facts["cost"] == min(tried(reports).values())
    assert read_model(tmp_path / "out" / "model.npz").meta["criterion"] == "corrective"
