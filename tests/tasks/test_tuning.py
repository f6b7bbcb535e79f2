"""Grammar weights: held-out errors choose them, the model keeps them, all that searches with the model uses them."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from contests import feature_folders, random_bigram, task
from margo.errors import MargoError
from margo.estimate import ml, mmi, paths
from margo.estimate.mce import MceOptions
from margo.estimate.mmi import MmiOptions
from margo.formats.models import read_model, write_model
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import grammar, string_score, weights_of, with_grammar, with_weights
from margo.model.graph import align_graph
from margo.runtime import record
from margo.runtime.parallel import place
from margo.search.forward_backward import posteriors
from margo.search.viterbi import viterbi
from margo.tasks import passes, speech, tuning
from margo.tasks.tuning import Axis, axes_of, fold_models, search
from runs import PICKING, RUNS, decoded_errors, go, lists, run_step, tried

NOWHERE = print


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return feature_folders(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def untuned(folders, tmp_path_factory):
    """The folders, and a start whose penalty is far off."""
    root = tmp_path_factory.mktemp("untuned")
    for name in ("train", "dev"):
        (root / name).symlink_to(folders / name)
    start(root / "ml", read_model(folders / "ml" / "model.npz"), insertion_penalty=-12.0)
    return root


def start(folder, hmms, **weights):
    write_model(folder / "model.npz", with_weights(hmms, **weights))
    record.write(folder, "train_ml", [], None, {}, ["model.npz"], 0.0, {})


def errors_of(hmms, folder):
    """``[word errors, wrong strings]`` by a plain decoding."""
    return list(decoded_errors(hmms, speech.read(folder)).values())


# -- the search --------------------------------------------------------------------------------------------------------


def loop_axes(start=0.0, values=("auto",)):
    hmms, _ = task(3, "loop", utterances=1)
    return axes_of(with_weights(hmms, insertion_penalty=start), {"insertion_penalty": values})


def bowl(*bottom):
    """Errors that grow with the distance from ``bottom``; the calls' settings are remembered."""
    calls = []

    def count(settings):
        calls.append(settings)
        return [[round(sum(abs(a - b) for a, b in zip(setting, bottom)) * 10), 1] for setting in settings]

    return count, calls


@pytest.mark.parametrize("bottom", [0, 7, 30, 180, -33, -52, -240, -390, -600])
def test_the_ladder_is_refined_around_the_best_and_extended_where_its_end_still_gains(bottom):
    count, calls = bowl(bottom)
    (best,), tried = search(loop_axes(), count)
    assert abs(best - bottom) <= max(5.0, abs(bottom) / 8)
    assert tried[best,] == min(tried.values())
    assert {(float(value),) for value in tuning.LADDER} <= tried.keys()
    assert sum(map(len, calls)) == len(tried) < 40  # nothing is counted twice


def test_of_equals_the_one_nearest_to_the_start_wins():
    (best,), _ = search(loop_axes(-40.0), lambda settings: [[0, 0]] * len(settings))
    assert best == -40.0
    (best,), _ = search(loop_axes(), lambda settings: [[9 * (not -170 < penalty < -50), 0] for (penalty,) in settings])
    assert -60 <= best < -50


def test_string_errors_count_as_word_errors_do():
    counts = {0.0: [10, 9], -10.0: [12, 5]}
    (best,), _ = search(loop_axes(values=("0", "-10")), lambda settings: [counts[penalty] for (penalty,) in settings])
    assert best == -10.0


def test_values_given_by_hand_are_all_that_is_chosen_from_and_the_start_is_told():
    count, calls = bowl(-7)
    (best,), tried = search(loop_axes(-7.0, ("-60", "-40")), count)
    assert best == -40.0 and tried.keys() == {(-60.0,), (-40.0,), (-7.0,)} and len(calls) == 1
    (best,), tried = search(loop_axes(-7.0, ("none",)), count)
    assert best == -7.0 and len(tried) == 1


@pytest.mark.parametrize("scale", [0.5, 1.0, 6.0, 12.0])
def test_a_bigrams_scale_and_penalty_are_searched_together(scale):
    def count(settings):
        return [[round(40 * abs(np.log2(s / scale)) + abs(p - 3 * s)), 0] for p, s in settings]

    axes = [Axis("insertion_penalty", 0.0, tuning.LADDER, True), Axis("scale", 1.0, (1.0,), True)]
    (penalty, best), _ = search(axes, count)
    assert abs(np.log2(best / scale)) < 0.3 and abs(penalty - 3 * best) <= 10


def test_weights_by_kind_of_grammar():
    hmms, _ = task(3, "isolated", utterances=1)
    bigram = replace(hmms, meta={"grammar": grammar("bigram", -3, random_bigram(np.random.default_rng(0), 3), 2.0)})
    assert weights_of(hmms) == {} and weights_of(bigram) == {"insertion_penalty": -3.0, "scale": 2.0}
    assert weights_of(replace(hmms, meta={})) == {"insertion_penalty": 0.0}
    assert weights_of(with_weights(bigram, scale=4, insertion_penalty=None))["scale"] == 4.0
    with pytest.raises(MargoError, match="--insertion-penalty does nothing: the model's grammar is isolated"):
        with_weights(hmms, insertion_penalty=-4)


# -- trainers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNS)
def test_every_trainer_chooses_the_penalty_on_dev_and_keeps_it(untuned, tmp_path, name):
    reports, facts = go(untuned, tmp_path, name)
    hmms, held = read_model(tmp_path / "model.npz"), json.loads((tmp_path / "grammar.json").read_text())
    assert "grammar.json" in facts["outputs"] and facts["weights"] == weights_of(hmms)
    assert held["chosen_on"] == "dev" and (held["strings"], len(held["tried"]) >= 12) == (60, True)
    after = [held["after"][key] for key in ("errors", "wrong")]
    assert after == errors_of(hmms, untuned / "dev")
    assert sum(after) == min(row["errors"] + row["wrong"] for row in held["tried"])
    before = with_weights(hmms, insertion_penalty=held["before"]["insertion_penalty"])
    assert [held["before"][key] for key in ("errors", "wrong")] == errors_of(before, untuned / "dev")
    if name != "ml":
        assert held["before"]["insertion_penalty"] == -12.0 and sum(after) <= facts["cost"]
        assert min(tried(reports).values()) == facts["cost"]  # under the start's


def test_a_start_that_is_kept_keeps_its_weights_once_they_were_chosen(untuned, tmp_path):
    nothing = {"iterations": 1, "refresh": 1, "check": 1, "growth": 1e9}
    _, facts = go(untuned, tmp_path / "first", "mm", **nothing)
    assert facts["chosen"] == 0 and not facts["unchanged"] and facts["weights"]["insertion_penalty"] > -12
    _, facts = go(untuned, tmp_path / "again", "mm", init=tmp_path / "first", **nothing)
    assert facts["chosen"] == 0 and facts["unchanged"] and "grammar.json" not in facts["outputs"]
    first, again = (read_model(tmp_path / name / "model.npz") for name in ("first", "again"))
    assert weights_of(first) == weights_of(again)


def test_none_and_values_by_hand(untuned, tmp_path):
    go(untuned, tmp_path / "none", "mmi", iterations=1, penalties=("none",))
    assert weights_of(read_model(tmp_path / "none" / "model.npz")) == {"insertion_penalty": -12.0}
    assert not (tmp_path / "none" / "grammar.json").exists()
    go(untuned, tmp_path / "two", "mmi", iterations=1, penalties=("-3", "-2"))
    assert weights_of(read_model(tmp_path / "two" / "model.npz"))["insertion_penalty"] in (-3.0, -2.0)
    go(untuned, tmp_path / "fixed", "ml", insertion_penalty=-2.5)
    assert weights_of(read_model(tmp_path / "fixed" / "model.npz")) == {"insertion_penalty": -2.5}
    _, facts = go(untuned, tmp_path / "more", "ml", init=tmp_path / "fixed", mixtures=8, anneal=0, insertion_penalty=-3)
    assert weights_of(read_model(tmp_path / "more" / "model.npz")) == {"insertion_penalty": -3.0}
    assert "grammar.json" not in facts["outputs"] and facts["dev"]["strings"] == 60


@pytest.mark.parametrize("name", PICKING)
def test_every_trainer_trains_under_the_weights_of_its_start(untuned, folders, tmp_path, name, monkeypatch):
    """What it takes for wrongly recognised is what decoding under the start's own weights gets wrong."""
    few = {"epochs": 1} if name == "lme" else {"iterations": 1}
    lines = [go(root, tmp_path / str(n), name, penalties=("none",), **few)[0]
             for n, root in enumerate((folders, untuned))]  # fmt: skip
    assert lines[0][0]["objective"] != lines[1][0]["objective"]
    for (line, *_), root in zip(lines, (folders, untuned)):
        _, wrong = errors_of(read_model(root / "ml" / "model.npz"), root / "train")
        assert abs(line["train_errors"] - wrong) <= (4 if name == "lme" else 0)  # which has the best Gaussian for all
    for module in (paths, mmi):  # the deliberate mistake: neither graph nor strings know of the penalty
        monkeypatch.setattr(module, "recognition_graph", lambda hmms, make=module.recognition_graph: make(free(hmms)))
        monkeypatch.setattr(module, "string_score", lambda hmms, words: string_score(free(hmms), words))
    lines = [go(root, tmp_path / f"{n} free", name, penalties=("none",), **few)[0]
             for n, root in enumerate((folders, untuned))]  # fmt: skip
    assert lines[0][0]["objective"] == lines[1][0]["objective"]


def free(hmms):
    return with_grammar(hmms, insertion_penalty=0.0)


@pytest.mark.parametrize("kind", ["loop", "bigram"])
def test_margins_hold_the_grammar_of_reference_and_competitors(kind, monkeypatch):
    """Between two penalties the score of every string changes by their difference for each of its words."""

    def margins(penalty):
        model = with_weights(hmms, insertion_penalty=penalty)
        found = paths.find_paths(paths.searcher(model, np.float64), data, 3, listed)
        scored = paths.score_paths(model, found.frames(data), found, paths.slots(found)).scores
        first = found.first[:-1]
        values = {}
        for i, name in enumerate(found.names):
            for path in range(first[i] + 1, found.first[i + 1]):
                longer = len(found.words[path]) - len(found.words[first[i]])
                values[name, found.words[path]] = (scored[first[i]] - scored[path], longer)
        return values

    hmms, data = task(5, kind, utterances=12)
    scores = log_likelihoods(paths.searcher(hmms).compiled, data[0][1])
    some = [list(h.names) for h in paths.nbest(paths.recognition_graph(hmms), scores, 4)]
    listed = {name: [words, *map(tuple, some)] for name, _, words in data}

    def law():
        weak, strong = margins(-1.0), margins(-61.0)
        assert len(weak) > 12 and any(longer for _, longer in weak.values())
        for key, (margin, longer) in weak.items():
            assert strong[key][0] == pytest.approx(margin + 60 * longer, abs=1e-6)

    law()
    monkeypatch.setattr(paths, "string_score", lambda hmms, words: 0.0)
    with pytest.raises(AssertionError):
        law()


@pytest.mark.parametrize("kappa", [0.03, 1.0])
@pytest.mark.parametrize("penalty", [-60.0, -240.0, -640.0])
def test_mmi_under_large_penalties(penalty, kappa):
    """Against a sum over all strings of up to six words by their own graphs; more do not fit six frames."""
    hmms, data = task(8, "loop", utterances=6, words=2)
    hmms = with_weights(hmms, insertion_penalty=penalty)
    data = [(name, x[:6], words[:1]) for name, x, words in data]
    stats = mmi.accumulate(hmms, data, MmiOptions(acoustic_scale=kappa, boost=0.0, double=True))
    expected, wrong = 0.0, 0
    strings = [string for count in range(1, 7) for string in product(hmms.words, repeat=count)]
    for _, x, words in data:
        totals, best = [], []
        for string in strings:
            graph = align_graph(hmms, string)
            scores = log_likelihoods(scorer(hmms.pool, graph.states, np.float64), x)
            path = viterbi(graph, scores)
            best.append(path.score + penalty * len(string) if path else -np.inf)
            total = posteriors(graph, scores, scale=kappa).log_likelihood[0] if path else -np.inf
            totals.append(total + kappa * penalty * len(string))
        own = strings.index(words)
        expected += totals[own] - np.logaddexp.reduce(totals)
        wrong += best[own] < max(best)
    assert stats.utterances == len(data) and stats.errors == wrong
    assert stats.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_nbest_alignments_and_decoding_use_the_models_weights(root, untuned, tmp_path):
    """Under a penalty of -12 strings are shorter, and confidences are those under 0.1 times as much."""
    hmms = read_model(untuned / "ml" / "model.npz")
    dev = speech.read(untuned / "dev")
    (chunk,) = dev.chunks
    chunk, lengths = chunk[:20], {}
    for penalty in (0.0, -12.0):
        model = with_weights(hmms, insertion_penalty=penalty)
        rows = passes.nbest_lists(model, 3, chunk)
        decoded = passes.decode(model, passes.OWN, chunk)
        assert [tuple(row["hyps"][0]["words"]) for row in rows] == [words for _, words, _, _ in decoded]
        for row in rows:
            alike = [each["score"] for each in row["hyps"] if each["words"] == row["ref"]]
            assert not alike or alike[0] == pytest.approx(row["ref_score"], abs=1e-4)
        lengths[penalty] = sum(len(words) for _, words, _, _ in decoded)
    assert lengths[-12.0] < lengths[0.0]
    sure = [each.words for each in passes.alignments(hmms, 0.1, chunk)[0]]
    scaled = passes.alignments(with_weights(hmms, insertion_penalty=-1.2), 1.0, [])  # nothing to do is no fault
    assert scaled == ([], [])
    unscaled = passes.alignments(with_weights(hmms, insertion_penalty=-120.0), 0.1, chunk)[0]
    assert [word[3] for words in sure for word in words] != [word[3] for each in unscaled for word in each.words]
    beliefs = (500.0,), (0.0,)  # words for sure; as likely noise
    decoded = (passes.timed_decode(hmms, passes.OWN, 0.1, belief, chunk) for belief in beliefs)
    whole, half = ([word[3] for each in rows for word in each.words] for rows in decoded)
    assert half == pytest.approx([0.5 * each for each in whole]) and min(whole) > 0


# -- without dev -------------------------------------------------------------------------------------------------------


def test_folds_of_the_training_data_choose_where_there_is_no_dev(untuned, tmp_path):
    _, facts = go(untuned, tmp_path / "ml", "ml", dev=False)
    held = json.loads((tmp_path / "ml" / "grammar.json").read_text())
    assert held["chosen_on"] == "5 folds of train" and held["strings"] == 130
    assert weights_of(read_model(tmp_path / "ml" / "model.npz")) == facts["weights"]
    go(untuned, tmp_path / "mce", "mce", dev=False)
    assert weights_of(read_model(tmp_path / "mce" / "model.npz")) == {"insertion_penalty": -12.0}
    assert not (tmp_path / "mce" / "grammar.json").exists()


@pytest.mark.parametrize("speakers", [1, 3, 9])
def test_a_folds_model_is_updated_from_the_others_alone(folders, speakers):
    data = speech.read(folders / "train")
    items = tuple(replace(item, speaker=f"s{n % speakers}") for n, item in enumerate(data.items))
    data = replace(data, items=items)
    hmms, options = read_model(folders / "ml" / "model.npz"), ml.MlOptions()
    with place(1, "", NOWHERE) as where:
        parts = fold_models(hmms, options, data, where)
    assert len(parts) == {1: 5, 3: 3, 9: 5}[speakers]
    assert sorted(item.name for _, fold in parts for item in fold.items) == [item.name for item in items]
    for model, fold in parts:
        theirs = {item.speaker for item in fold.items}
        names = {item.name for item in fold.items}
        if speakers > 1:
            assert {item.name for item in items if item.speaker in theirs} == names
        rest = tuple(item for item in items if item.name not in names)
        stats = ml.accumulate(hmms, speech.load(rest, hmms), options)
        expected, _ = ml.update(hmms, stats, options)
        np.testing.assert_allclose(model.pool.means, expected.pool.means, rtol=1e-4, atol=1e-5)


def test_many_utterances_are_thinned_out_before_folds_are_decoded(folders, monkeypatch):
    monkeypatch.setattr(tuning, "MOST", 50)
    hmms = read_model(folders / "ml" / "model.npz")
    with place(1, "", NOWHERE) as where:
        parts = fold_models(hmms, ml.MlOptions(), speech.read(folders / "train"), where)
    assert 40 <= sum(len(fold.items) for _, fold in parts) <= 55


# -- how long ----------------------------------------------------------------------------------------------------------


def test_dev_says_when_to_end_and_without_dev_few_iterations_are_made(folders, tmp_path):
    settings = {"iterations": None, "refresh": 6, "check": 3}
    reports, facts = go(folders, tmp_path / "dev", "mce", **settings)
    errors = tried(reports)
    looks = list(errors)
    best = min(errors, key=errors.get)
    assert facts["chosen"] == best and len(looks) - 1 - looks.index(best) in (5, 0)  # patience, or the bound of 90
    assert len(reports) != 19 and len(reports) <= 91
    reports, _ = go(folders, tmp_path / "blind", "mce", dev=False, **settings)
    assert len(reports) <= MceOptions.BLIND + 1


# -- decode ------------------------------------------------------------------------------------------------------------


def decode(root, folders, out, capsys, **options):
    run_step(root, "decode", out, **{"model": folders / "ml", "data": (folders / "dev",), **options})
    return (out / "dev" / "hyp").read_text(), capsys.readouterr().out


def test_decode_takes_other_weights_and_counts_errors_under_some(root, untuned, folders, tmp_path, capsys):
    own, said = decode(root, untuned, tmp_path / "own", capsys)
    other, _ = decode(root, untuned, tmp_path / "other", capsys, insertion_penalty=-0.7)
    tuned, _ = decode(root, folders, tmp_path / "tuned", capsys)
    assert own != other == tuned and said == ""
    _, table = decode(root, untuned, tmp_path / "table", capsys, penalties=(-40.0, -12.0, 0.0))
    assert table == (tmp_path / "table" / "dev" / "weights").read_text()
    head, *rows = [line.split() for line in table.splitlines()]
    assert head[:2] == ["set", "insertion_penalty"] and [row[1] for row in rows] == ["-40", "-12", "0"]
    hmms = read_model(untuned / "ml" / "model.npz")
    for row in rows:
        model = with_weights(hmms, insertion_penalty=float(row[1]))
        assert [int(row[2]), int(row[4])] == errors_of(model, untuned / "dev")
    with pytest.raises(MargoError, match="--scale does nothing: the model's grammar is loop"):
        decode(root, untuned, tmp_path / "scale", capsys, scale=2.0)


def test_lists_are_those_of_the_models_weights(root, untuned, tmp_path):
    """Lists of the start before its penalty was changed are refused."""
    nbest = lists(root, untuned, tmp_path / "nbest")
    go(untuned, tmp_path / "mce", "mce", nbest=nbest)
    start(tmp_path / "other", read_model(untuned / "ml" / "model.npz"), insertion_penalty=-3.0)
    with pytest.raises(MargoError, match="which is not what .*other is now"):
        go(untuned, tmp_path / "b", "mce", nbest=nbest, init=tmp_path / "other")
