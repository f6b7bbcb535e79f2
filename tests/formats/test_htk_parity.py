"""HTK 3.4.1's numbers: Viterbi scores, alignments, likelihoods, one Baum-Welch pass, mixture splitting, strings."""

import re

import numpy as np
import pytest

from margo.estimate.ml import MlOptions, accumulate, update
from margo.formats.htk import read_hmmdefs, read_mlf, read_parameters
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.gaussian.splitting import split
from margo.model.graph import align_graph, isolated_graph, loop_graph
from margo.search.forward_backward import posteriors
from margo.search.viterbi import align, viterbi, viterbi_score

HTK = MlOptions(prune=float(np.exp(-10)))  # HERest leaves component posteriors under exp(-10) out
SHIFT = 100_000  # 100 ns units a frame


@pytest.fixture(scope="module")
def htk(references):
    return references / "htk"


def model(folder):
    return read_hmmdefs(folder / "macros", folder / "hmmdefs")


def utterances(folder):
    labels = read_mlf(folder / "ref.mlf")
    return [
        (name, read_parameters(folder / "mfc" / f"{name}.mfc")[0], [label.name for label in found])
        for name, found in labels.items()
    ]


def scores(hmms, graph, x):
    return log_likelihoods(scorer(hmms.pool, graph.states), x)


@pytest.mark.parametrize("mixtures", [1, 8])
def test_viterbi_scores_of_every_word(htk, mixtures):
    hmms = model(htk / f"model_{mixtures}mix")
    header, *rows = (
        line.split("\t") for line in (htk / f"viterbi_all_words_{mixtures}mix.tsv").read_text().splitlines()
    )
    graphs = {word: align_graph(hmms, [word]) for word in header[2:]}
    worst, count = 0.0, 0
    for name, frames, *values in rows:
        x = read_parameters(htk / "mfc" / f"{name}.mfc")[0]
        assert len(x) == int(frames)
        for word, value in zip(header[2:], values):
            found = viterbi_score(graphs[word], scores(hmms, graphs[word], x))
            worst = max(worst, abs(found / float(value) - 1))
            count += 1
    assert count == 200 and worst < 1e-5


@pytest.mark.parametrize("mixtures", [1, 8])
def test_recognised_words(htk, mixtures):
    hmms = model(htk / f"model_{mixtures}mix")
    graph = isolated_graph(hmms)
    expected = read_mlf(htk / f"rec_{mixtures}mix.mlf")
    assert len(expected) == 20
    for name, labels in expected.items():
        path = viterbi(graph, scores(hmms, graph, read_parameters(htk / "mfc" / f"{name}.mfc")[0]))
        assert path.word_names == tuple(label.name for label in labels)
        assert path.score == pytest.approx(float(labels[0].rest[0]), rel=1e-5)


def state_segments(hmms, path):
    """(start, end) in frames of each run of one state inside a unit."""
    cuts = {segment.start for segment in path.units} | set((np.flatnonzero(np.diff(path.nodes)) + 1).tolist())
    cuts = [*sorted(cuts), len(path.nodes)]
    return list(zip(cuts, cuts[1:]))


def compare_alignments(hmms, data, expected):
    equal = total = 0
    for name, x, words in data:
        graph = align_graph(hmms, words)
        found = state_segments(hmms, align(graph, scores(hmms, graph, x)))
        wanted = [(label.start // SHIFT, label.end // SHIFT) for label in expected[name]]
        assert len(found) == len(wanted)
        equal += sum(one == other for one, other in zip(found, wanted))
        total += len(wanted)
    return equal / total


@pytest.mark.parametrize("mixtures", [1, 8])
def test_forced_alignments(htk, mixtures):
    hmms = model(htk / f"model_{mixtures}mix")
    assert compare_alignments(hmms, utterances(htk), read_mlf(htk / f"align_{mixtures}mix.mlf")) >= 0.995


def compare_forward(hmms, data, log):
    printed = dict(re.findall(r"Processing Data: (\S+)\.mfc;.*\n Utterance prob per frame = (\S+)", log.read_text()))
    assert len(printed) == len(data)
    for name, x, words in data:
        graph = align_graph(hmms, words)
        found = posteriors(graph, scores(hmms, graph, x)).log_likelihood[0] / len(x)
        assert found == pytest.approx(float(printed[name]), abs=1e-4)


@pytest.mark.parametrize("mixtures", [1, 8])
def test_forward_likelihoods(htk, mixtures):
    compare_forward(model(htk / f"model_{mixtures}mix"), utterances(htk), htk / f"herest_{mixtures}mix.log")


def compare_models(found, wanted, mean=1e-3, part=5e-3):
    """Means within ``mean`` standard deviations, variances, weights and transitions within ``part``."""
    weights, expected = np.exp(found.pool.log_weights), np.exp(wanted.pool.log_weights)
    alive = expected > 0
    np.testing.assert_array_equal(weights > 0, alive)
    gap = np.abs(found.pool.means - wanted.pool.means) / np.sqrt(wanted.pool.variances)
    assert gap[alive].max() < mean
    np.testing.assert_allclose(found.pool.variances[alive], wanted.pool.variances[alive], rtol=part)
    np.testing.assert_allclose(weights[alive], expected[alive], rtol=part)
    np.testing.assert_allclose(np.exp(found.log_transitions), np.exp(wanted.log_transitions), rtol=part, atol=1e-6)


@pytest.mark.parametrize("mixtures", [1, 8])
def test_one_pass_of_baum_welch(htk, mixtures):
    hmms = model(htk / f"model_{mixtures}mix")
    found, report = update(hmms, accumulate(hmms, utterances(htk), HTK), HTK)
    wanted = model(htk / f"herest_{mixtures}mix_out")
    compare_models(found, wanted)
    log = (htk / f"herest_{mixtures}mix.log").read_text()
    assert report["objective"] == pytest.approx(
        float(re.search(r"average log prob per frame = (\S+)", log)[1]), abs=1e-4
    )
    assert report["floored"] == int(re.search(r"Total (\d+) floored variance elements", log)[1])
    with pytest.raises(AssertionError):  # mutation twin: the model that went in is not the one that came out
        compare_models(hmms, wanted)


@pytest.mark.parametrize(("before", "after", "mixtures"), [("in_1mix", "out_2mix", 2), ("in_4mix", "out_8mix", 8)])
def test_mixture_splitting(htk, before, after, mixtures):
    start, wanted = model(htk / "mixup" / before), model(htk / "mixup" / after)
    compare_models(start.with_pool(split(start.pool, mixtures)), wanted, mean=1e-5, part=1e-6)
    if mixtures == 8:
        with pytest.raises((AssertionError, ValueError)):  # splitting in steps is another order
            compare_models(start.with_pool(split(split(start.pool, 5), 8)), wanted, mean=1e-5, part=1e-6)


@pytest.mark.parametrize("penalty", ["0.0", "-50.0"])
def test_connected_strings(htk, penalty):
    hmms = model(htk / "strings" / "model_8mix")
    graph = loop_graph(hmms, float(penalty))
    for name, labels in read_mlf(htk / "strings" / f"rec_p{penalty}.mlf").items():
        x = read_parameters(htk / "strings" / "mfc" / f"{name}.mfc")[0]
        path = viterbi(graph, scores(hmms, graph, x))
        assert path.word_names == tuple(label.name for label in labels)
        assert [s.start for s in path.words] == [label.start // SHIFT for label in labels]
        printed = sum(float(label.rest[0]) for label in labels)  # a word's score has its penalty in it
        assert path.score == pytest.approx(printed, rel=1e-5)


def test_connected_alignment_and_training(htk):
    folder = htk / "strings"
    hmms, data = model(folder / "model_8mix"), utterances(folder)
    assert compare_alignments(hmms, data, read_mlf(folder / "align.mlf")) >= 0.995
    compare_forward(hmms, data, folder / "herest_8mix.log")
    found, _ = update(hmms, accumulate(hmms, data, HTK), HTK)
    compare_models(found, model(folder / "herest_8mix_out"))
