"""Words through a lexicon: every criterion trains units that words share, in several pronunciations; units in context,
transforms and adapted features are models and folders like any others; what a lexicon lacks is told."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from contests import feature_folders
from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz
from margo.formats.models import read_model
from margo.runtime import record
from margo.runtime.parallel import place
from margo.tasks import speech
from margo.tasks.pronouncing import lexicon_of, reweighed, usable
from runs import go, run_step

LEXICON = "w0 a b\nw0 a\nw1 c\nw2 d b\n"
SOUNDS = {"states": 1, "mixtures": 1, "iterations": 6, "anneal": 0}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = feature_folders(tmp_path_factory.mktemp("phones"))
    (folder / "lexicon.txt").write_text(LEXICON)
    go(folder, folder / "mono", "ml", lexicon=folder / "lexicon.txt", penalties=("none",), **SOUNDS)
    return folder


def settings(folders, **changes):
    given = {"lexicon": folders / "lexicon.txt", "unknown": "error", "silence_unit": "sil", "vocabulary": "lexicon"}
    return SimpleNamespace(**{**given, **changes})


def test_words_share_units_and_keep_their_pronunciations(folders):
    hmms = read_model(folders / "mono" / "model.npz")
    assert [unit.name for unit in hmms.units] == ["a", "b", "c", "d"]
    assert [way.units for way in hmms.lexicon["w0"]] == [("a", "b"), ("a",)]
    assert hmms.lexicon["w0"][0].log_prob == pytest.approx(np.log(0.5))
    reports = [json.loads(line) for line in (folders / "mono" / "progress.jsonl").read_text().splitlines()]
    objectives = [report["objective"] for report in reports]
    assert (np.diff(objectives) > 0).all() and len(objectives) > 3  # Baum-Welch over all pronunciations


@pytest.mark.parametrize("name", ["mce", "mmi", "mm", "lme"])
def test_every_criterion_trains_them(folders, tmp_path, name):
    reports, facts = go(folders, tmp_path / name, name, init=folders / "mono", penalties=("none",))
    assert facts["cost"] <= reports[0]["dev_errors"] + reports[0]["dev_wrong"]
    assert reports[-1]["objective"] != reports[0]["objective"]
    assert read_model(tmp_path / name / "model.npz").lexicon == read_model(folders / "mono" / "model.npz").lexicon


def test_probabilities_follow_what_is_said(folders, tmp_path):
    hmms, data = read_model(folders / "mono" / "model.npz"), speech.read(folders / "train")
    with place(1) as where:
        ways = reweighed(hmms, data, where).lexicon["w0"]
    assert sum(np.exp(way.log_prob) for way in ways) == pytest.approx(1)
    said = sum(word == "w0" for item in data.items for word in item.words)
    counts = [np.exp(way.log_prob) * (said + 2) - 1 for way in ways]  # one was added to each
    assert sum(counts) == pytest.approx(said) and counts == pytest.approx(np.round(counts))
    same = {"init": folders / "mono", "penalties": ("none",)}
    go(folders, tmp_path / "counted", "ml", **same, pronunciations="counted")
    assert read_model(tmp_path / "counted" / "model.npz").lexicon["w0"] == ways != hmms.lexicon["w0"]


def test_units_in_context_and_transforms_go_all_the_way(root, folders, tmp_path):
    """mono -> tied -> trained; LDA and MLLT -> tied on the new features -> trained -> adapted by speaker -> trained."""
    options = {"init": folders / "mono", "data": folders / "train", "least_frames": 5.0, "least_gain": 1.0}
    run_step(root, "tie_triphones", tmp_path / "tied", **options)
    tied = read_model(tmp_path / "tied" / "model.npz")
    assert {"a+b", "a", "a-b", "d-b"} >= {unit.name for unit in tied.units} & {"a+b", "a", "a-b", "d-b"} != set()
    go(folders, tmp_path / "tri", "ml", init=tmp_path / "tied", mixtures=1, penalties=("none",))
    run_step(root, "train_lda", tmp_path / "lda", init=folders / "mono", data=folders / "train", dimension=3, left=1,
             right=1)  # fmt: skip
    for name in ("train", "dev"):
        run_step(root, "transform_features", tmp_path / "new" / name, transform=tmp_path / "lda", data=folders / name)
    assert speech.read(tmp_path / "new" / "dev").features["dimension"] == 3
    run_step(root, "tie_triphones", tmp_path / "tied_lda", onto=tmp_path / "new" / "train", **options)
    go(tmp_path / "new", tmp_path / "lda_1", "ml", init=tmp_path / "tied_lda", mixtures=1, penalties=("none",))
    for name in ("train", "dev"):
        run_step(root, "adapt_features", tmp_path / "sat" / name, model=tmp_path / "lda_1",
                 data=tmp_path / "new" / name, least_frames=14.0)  # fmt: skip
    meta, arrays = read_npz(tmp_path / "sat" / "train" / "speakers.npz")
    assert len(meta["speakers"]) == 130 and any(not np.array_equal(m, np.eye(3, 4)) for m in arrays.values())
    before, after = (go(folder, tmp_path / folder.name / "out", "ml", init=tmp_path / "lda_1", mixtures=1,
                        penalties=("none",))[0][0] for folder in (tmp_path / "new", tmp_path / "sat"))  # fmt: skip
    assert after["objective"] > before["objective"]  # adapted features fit the model better
    adapted_and_not_are_told_apart(root, tmp_path)
    said = "the features have gone through transform [0-9a-f]{16} .transform_features., expected no transform"
    with pytest.raises(MargoError, match=said):
        run_step(root, "transform_features", tmp_path / "2", transform=tmp_path / "lda", data=tmp_path / "new" / "dev")
    with pytest.raises(MargoError, match="have gone through no transform .*, expected transform [0-9a-f]{16}"):
        run_step(root, "decode", tmp_path / "3", model=tmp_path / "lda_1", data=(folders / "dev",))


def test_neighbours_in_other_words_go_all_the_way(root, folders, tmp_path):
    """mono -> tied across words -> trained, its pronunciations counted -> every criterion, decoded and aligned."""
    run_step(root, "tie_triphones", tmp_path / "tied", init=folders / "mono", data=folders / "train", across=True,
             least_frames=5.0, least_gain=1.0)  # fmt: skip
    same = {"mixtures": 1, "penalties": ("none",)}
    reports, _ = go(folders, tmp_path / "ml", "ml", init=tmp_path / "tied", pronunciations="counted", **same)
    assert (np.diff([report["objective"] for report in reports]) > 0).all()
    hmms = read_model(tmp_path / "ml" / "model.npz")
    assert hmms.crossing.shape == (5, 4, 5) and len(np.unique(hmms.crossing)) == len(hmms.units) > 4
    assert hmms.lexicon["w0"][0].log_prob != pytest.approx(np.log(0.5))
    for name in ("mce", "mmi", "mm", "lme"):
        reports, facts = go(folders, tmp_path / name, name, init=tmp_path / "ml", penalties=("none",))
        assert facts["cost"] <= reports[0]["dev_errors"] + reports[0]["dev_wrong"]
        assert reports[-1]["objective"] != reports[0]["objective"]
        np.testing.assert_array_equal(read_model(tmp_path / name / "model.npz").crossing, hmms.crossing)
    run_step(root, "align", tmp_path / "ali", model=tmp_path / "ml", data=folders / "dev")
    for name, said in (("export_kaldi", "which no lexicon can tell"), ("export_htk", "which no dictionary can tell")):
        with pytest.raises(MargoError, match=f"units of this model depend on the words around them, {said}"):
            run_step(root, name, tmp_path / name, model=tmp_path / "ml")


def test_questions_and_gaussians_as_in_kaldi(root, folders, tmp_path):
    (tmp_path / "questions.txt").write_text("a b\nd\n\na b\n")
    options = {"init": folders / "mono", "data": folders / "train", "least_frames": 5.0, "least_gain": 1.0}
    run_step(root, "tie_triphones", tmp_path / "tied", **options, questions=tmp_path / "questions.txt")
    assert record.read(tmp_path / "tied")["tying"]["questions"] == 3  # two, and the edge of a word
    (tmp_path / "bad.txt").write_text("a\nb zz\n")
    with pytest.raises(MargoError, match="line 2: zz is not a unit of the model"):
        run_step(root, "tie_triphones", tmp_path / "not", **options, questions=tmp_path / "bad.txt")
    reports, _ = go(folders, tmp_path / "tri", "ml", init=tmp_path / "tied", mixtures=1, gaussians=21,
                    penalties=("none",))  # fmt: skip
    hmms = read_model(tmp_path / "tri" / "model.npz")
    assert hmms.pool.n_gaussians == 21 and len({*hmms.pool.sizes.tolist()}) > 1
    assert reports[-1]["objective"] > reports[0]["objective"]


def adapted_and_not_are_told_apart(root, place):
    """A model of adapted features refuses those that are not, and the other way round, unless it is the model that they
    were adapted to, which they fit better. Adapted again along the paths of adapted ones, they fit the model of these.
    """
    plain, adapted = place / "new" / "dev", place / "sat" / "dev"
    refused = "fmllr is {}, expected {}".format
    mark = repr(speech.read(adapted).features["fmllr"])
    for model, data, said in ((place / "new" / "out", adapted, refused(mark, "'absent'")),
                              (place / "sat" / "out", plain, refused("'absent'", mark))):  # fmt: skip
        with pytest.raises(MargoError, match=said):
            run_step(root, "align", place / "refused", model=model, data=data)
    run_step(root, "align", place / "taken", model=place / "sat" / "out", data=adapted)
    for name, data in (("plain", plain), ("own", adapted)):
        run_step(root, "decode", place / name, model=place / "lda_1", data=(data,))
    before, after = (np.loadtxt(place / name / "dev" / "scores", usecols=1).sum() for name in ("plain", "own"))
    assert after > before
    with pytest.raises(MargoError, match="own/dev/hyp: not of the utterances of .*train: [0-9]+ faults"):
        run_step(root, "adapt_features", place / "not", model=place / "lda_1", data=place / "new" / "train",
                 hyp=place / "own" / "dev")  # fmt: skip
    with pytest.raises(MargoError, match=refused(mark, "'absent'")):
        go(place / "sat", place / "other", "ml", init=place / "new" / "out", mixtures=1, penalties=("none",))
    for name in ("train", "dev"):
        run_step(root, "adapt_features", place / "again" / name, model=place / "sat" / "out", data=place / "new" / name,
                 paths=place / "sat" / name, least_frames=14.0)  # fmt: skip
    go(place / "again", place / "again" / "out", "ml", init=place / "sat" / "out", mixtures=1, penalties=("none",))
    with pytest.raises(MargoError, match="fmllr is"):
        run_step(root, "align", place / "refused", model=place / "again" / "out", data=adapted)


def test_words_without_pronunciation_are_told_skipped_or_spelled(folders, tmp_path):
    data = speech.read(folders / "train")
    (tmp_path / "lexicon.txt").write_text("w0 a b\nw1 c\n")
    count = sum(word == "w2" for item in data.items for word in item.words)
    with pytest.raises(MargoError) as caught:
        lexicon_of(settings(folders, lexicon=tmp_path / "lexicon.txt"), data)
    assert f"w2: {count} times in {folders / 'train' / 'text'}" in str(caught.value)
    spelling = settings(folders, lexicon=tmp_path / "lexicon.txt", unknown="grapheme")
    assert lexicon_of(spelling, data)["w2"] == ((("w", "2"), 0.0),)
    said = []
    step = SimpleNamespace(input_file=lambda path: path, say=said.append, name="train_ml")
    assert usable(spelling, data, step).items == data.items
    assert "said by their letters: 1 words of" in said[0] and said.pop().endswith(f"no pronunciation: w2 ({count})")
    kept = usable(settings(folders, lexicon=tmp_path / "lexicon.txt", unknown="skip"), data, step)
    assert len(kept.items) == sum("w2" not in item.words for item in data.items) and f"w2 ({count})" in said[0]
    assert {*lexicon_of(settings(folders, lexicon=tmp_path / "lexicon.txt", unknown="skip"), kept)} == {"w0", "w1"}


def test_a_silent_word_in_a_transcript_is_unknown_too(folders, tmp_path):
    data = speech.read(folders / "train")
    (tmp_path / "lexicon.txt").write_text("w0 a b\nw1 c\nw2 sil\n")
    said = []
    step = SimpleNamespace(input_file=lambda path: path, say=said.append, name="train_ml")
    options = settings(folders, lexicon=tmp_path / "lexicon.txt", unknown="skip")
    kept = usable(options, data, step)
    assert len(kept.items) == sum("w2" not in item.words for item in data.items) > 0 and "w2 (" in said[0]
    assert {*lexicon_of(options, kept)} == {"w0", "w1"}


ARPA = """\\data\\
ngram 1=3
ngram 2=1

\\1-grams:
-1 </s>
-1 w0
-1 w1 -0.5

\\2-grams:
-0.1 w0 w1

\\end\\
"""


@pytest.mark.parametrize(
    ("lexicon", "lm", "said"),
    [
        ("w0 a\nw1 c\n", "", "words of the transcripts without pronunciation"),
        (LEXICON + "zoo oo\n", "", "units without data"),
        (LEXICON, ARPA, "w0: no backoff, which a 1-gram needs that longer ones begin with"),
        (LEXICON, ARPA.replace("2=1", "2=7").replace("\n-1 w0", "\n-1 w0 -0.5"), "1 2-grams, its head says 7"),
    ],
)
def test_what_a_training_run_lacks_is_told(folders, tmp_path, lexicon, lm, said):
    (tmp_path / "lexicon.txt").write_text(lexicon)
    (tmp_path / "lm").write_text(lm)
    grammar = {"grammar": "lm", "lm": tmp_path / "lm"} if lm else {}
    with pytest.raises(MargoError) as caught:
        go(folders, tmp_path / "out", "ml", lexicon=tmp_path / "lexicon.txt", **grammar)
    assert said in str(caught.value) and str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_transform_of_another_dimension_is_told(root, folders, tmp_path):
    dimension = speech.read(folders / "dev").features["dimension"]
    run_step(root, "train_lda", tmp_path / "lda", init=folders / "mono", data=folders / "train", dimension=2, left=0,
             right=0)  # fmt: skip
    meta, arrays = read_npz(tmp_path / "lda" / "transform.npz")
    (tmp_path / "other").mkdir()
    write_npz(tmp_path / "other" / "transform.npz", meta, {"matrix": arrays["matrix"][:, 1:]})
    told = f"^.*matrix is float64 .2, {dimension - 1}., expected .* {dimension} columns.*$"  # in a line
    with pytest.raises(MargoError, match=told):
        run_step(root, "transform_features", tmp_path / "1", transform=tmp_path / "other", data=folders / "dev")
    wider = {**meta, "columns": dimension + 1, "source": {**meta["source"], "dimension": dimension + 1}}
    write_npz(tmp_path / "other" / "transform.npz", wider, {"matrix": np.ones((2, dimension + 1))})
    with pytest.raises(MargoError, match=f"dimension is {dimension}, expected {dimension + 1}"):
        run_step(root, "transform_features", tmp_path / "2", transform=tmp_path / "other", data=folders / "dev")


def test_units_without_data_and_silent_words(folders, tmp_path):
    data = speech.read(folders / "train")
    (tmp_path / "lexicon.txt").write_text(LEXICON + "!SIL sil\nzoo z oo\n")
    with pytest.raises(MargoError) as caught:
        lexicon_of(settings(folders, lexicon=tmp_path / "lexicon.txt"), data)
    assert "oo: in zoo, no word of" in str(caught.value) and "z: in zoo" in str(caught.value)
    words = lexicon_of(settings(folders, lexicon=tmp_path / "lexicon.txt", vocabulary="transcripts"), data)
    assert [*words] == ["w0", "w1", "w2"]
    assert lexicon_of(settings(folders, lexicon="graphemes"), data)["w1"] == ((("w", "1"), 0.0),)
    assert lexicon_of(settings(folders, lexicon=None), data)["w1"] == ("w1",)
