"""The steps of generative kernels on small data: what they write, and what they refuse."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from margo.errors import MargoError
from margo.formats.samples import Samples, read_samples, write_samples


def call(root, folder, name, *arguments, expect=0):
    place = root / ("local" if name.endswith("_data") else "steps") / f"{name}.py"
    done = subprocess.run([sys.executable, place, *map(str, arguments)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == expect, done.stderr
    return done.stderr


def vowels(path, rng):
    parts = {}
    for split, speakers in (("train", 4), ("test", 2)):
        y = np.tile(np.arange(3), 8 * speakers)
        groups = np.repeat([f"{split}{s}" for s in range(speakers)], 24)
        x = rng.normal(size=(len(y), 2)) + 1.6 * np.eye(3)[y][:, :2]
        parts[split] = Samples(x, y, groups)
    write_samples(path, parts)


@pytest.fixture(scope="module")
def folder(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    vowels(folder / "vowels.csv", np.random.default_rng(1))
    call(root, folder, "train_kernel", "--data", "vowels.csv", "--mixtures", 2, "--starts", 2, "--out", "model")
    call(root, folder, "test_kernel", "--model", "model", "--data", "vowels.csv", "--ml", "true", "--out", "scored")
    return folder


def test_training_leaves_a_record_of_every_step_of_every_pair(folder):
    lines = [json.loads(line) for line in (folder / "model" / "pairs.jsonl").read_text().splitlines()]
    expected = {(run, *pair) for run in (0, 1) for pair in ((0, 1), (0, 2), (1, 2))}
    assert {(line["run"], *line["pair"]) for line in lines} == expected
    assert all(line["change"] <= 0 for line in lines)
    progress = [json.loads(line) for line in (folder / "model" / "progress.jsonl").read_text().splitlines()]
    first = [line["objective"] for line in lines if line["iteration"] == 0]
    assert progress[0]["objective"] == pytest.approx(sum(first) / 2)
    assert all(line["change"] <= 0 for line in progress[1:]) and progress[-1]["objective"] < progress[0]["objective"]


def test_scores_are_means_over_starts(folder):
    for system in ("gmm-ml", "gmm-cl", "svm-llr-init", "svm-llr"):
        for split, total in (("train", 96), ("test", 48)):
            row = json.loads((folder / "scored" / f"{system}_2" / split / "score.json").read_text())
            assert (row["system"], row["mixtures"], row["set"], row["metric"]) == (system, 2, split, "err")
            assert len(row["runs"]) == 2 and row["percent"] == pytest.approx(np.mean(row["runs"]), abs=0.01)
            assert row["total"] == 2 * total and row["percent"] < 60


def test_the_same_call_gives_the_same_model(folder, root):
    arguments = ("--data", "vowels.csv", "--mixtures", 2, "--starts", 2, "--nj", 2, "--out", "again")
    call(root, folder, "train_kernel", *arguments)
    assert (folder / "again" / "model.npz").read_bytes() == (folder / "model" / "model.npz").read_bytes()


OTHERS = [{"metric": "none"}, {"weights": True}, {"second": True}, {"features": 2}, {"cost": 0.1}, {"tied": True}]


@pytest.mark.parametrize("changed", OTHERS)
def test_a_kernel_is_trained_as_the_options_say(folder, changed):
    """The mistake is an option that the step takes and training does not get."""
    from margo.kernel.descent import KernelOptions
    from margo.tasks.mixture_kernels import train_run

    samples = read_samples(folder / "vowels.csv")["train"]

    def trained(tied=False, **changes):
        own = KernelOptions(space="llr-mean", iterations=1, **changes)
        options = SimpleNamespace(**vars(own), whole_space=own.whole_space, seed=0, mixtures=2, tied=tied)
        arrays, lines = train_run(options, (0, samples, 0))
        return arrays["final0_weights"].shape[1], lines[0]["objective"]

    width, objective = trained()
    other_width, other = trained(**changed)
    assert other_width - width == {"weights": 4, "second": 8}.get(*changed, 0)
    assert abs(other - objective) > 1e-6 * objective


def test_selection_and_references(folder, root):
    arguments = ("--mixtures", 1, 2, "--iterations", 0, 2, "--together", 3, 9)
    call(root, folder, "select_kernel", "--data", "vowels.csv", "--out", "chosen", *arguments, "--centre", "true")
    with open(folder / "chosen" / "tried.csv", encoding="utf-8", newline="") as file:
        tried = list(csv.DictReader(file))
    assert {(row["space"], row["scheme"]) for row in tried} == {
        ("ll", "pairs"), ("ll", "rest"), ("ll", "joint"), ("ll-mean", "pairs"), ("ll-mean", "joint"), ("llr", "pairs"),
        ("llr-mean", "pairs")}  # fmt: skip
    errors, chosen = ([int(row[name]) for row in tried] for name in ("errors", "chosen"))
    assert errors == sorted(errors) and sum(chosen) in (3, 9) and all(chosen[: sum(chosen)])
    found = json.loads((folder / "chosen" / "choice.json").read_text())
    score = json.loads(next((folder / "chosen").glob("svm-chosen_*/test/score.json")).read_text())
    assert score["choice"] == found["choice"] and found["together"][str(sum(chosen))] == min(found["together"].values())
    assert f"best {sum(chosen)} of {len(tried)} candidates" in score["choice"]
    call(root, folder, "test_references", "--data", "vowels.csv", "--out", "references", "--systems", "knn", "qda")
    call(root, folder, "compare_schemes", "--data", "vowels.csv", "--out", "schemes", "--bits", 3, "--starts", 1,
         "--lengths", 2, 3, "--assignments", 2)  # fmt: skip
    codes, whole = json.loads((folder / "schemes" / "plots.json").read_text())
    assert [row[0] for row in whole["cells"]] == ["joint", "each"] and codes["columns"][0] == "bits"
    for row in whole["cells"]:  # from nothing and from pairs, the same value, and both before they had to end
        assert max(map(int, row[1:3])) < 10_000
        assert float(row[3]) == pytest.approx(float(row[4]), rel=0.02)
    for place in ("references/knn_1", "schemes/svm-ll-codes_2", "chosen/svm-chosen_*"):
        assert list(folder.glob(f"{place}/test/score.json")), place


def test_artificial_data_and_plots(root, tmp_path):
    call(root, tmp_path, "gaussians_data", "--out", "data", "--runs", 2, "--train", 100, "--test", 50)
    assert len(read_samples(tmp_path / "data" / "run1.csv")["test"].x) == 50
    call(root, tmp_path, "train_kernel", "--data", "data", "--out", "model", "--iterations", 5, "--starts", 3)
    assert len({json.loads(line)["run"] for line in (tmp_path / "model" / "pairs.jsonl").read_text().splitlines()}) == 2
    call(root, tmp_path, "plot_kernel", "--model", "model", "--data", "data/run0.csv", "--out", "plots",
         "--resolution", 10)  # fmt: skip
    before, after = json.loads((tmp_path / "plots" / "plots.json").read_text())
    assert "before" in before["title"] and "after" in after["title"]
    assert np.shape(after["region"]["values"]) == (10, 10) and before["region"] != after["region"]
    call(root, tmp_path, "test_references", "--data", "data", "--out", "references", "--systems", "bayes")
    row = json.loads((tmp_path / "references" / "bayes_1" / "test" / "score.json").read_text())
    assert row["percent"] < 25


def test_the_choice_does_not_see_the_test_set(folder, root):
    """Other labels and features of the test rows: the same candidates in the same order, the same choice."""
    parts = read_samples(folder / "vowels.csv")
    test = parts["test"]
    write_samples(folder / "other.csv", {"train": parts["train"], "test": Samples(-test.x, 2 - test.y, test.groups)})
    for name in ("vowels", "other"):
        call(root, folder, "select_kernel", "--data", f"{name}.csv", "--out", f"by_{name}", "--mixtures", 1, "--costs",
             1, "--widths", 0, "--spaces", "ll", "llr", "--together", 2)  # fmt: skip
    assert (folder / "by_vowels" / "tried.csv").read_bytes() == (folder / "by_other" / "tried.csv").read_bytes()
    rows = [json.loads((folder / f"by_{name}" / "svm-chosen_1" / "test" / "score.json").read_text())
            for name in ("vowels", "other")]  # fmt: skip
    assert rows[0]["choice"] == rows[1]["choice"] and rows[0]["errors"] != rows[1]["errors"]


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Feature folders of two words that differ in a slope that an untrained model, the same for both, cannot see."""
    from margo.formats import features
    from margo.formats.models import write_model
    from margo.model.hmm import flat_start, whole_words
    from margo.runtime import record

    folder, rng = tmp_path_factory.mktemp("letters"), np.random.default_rng(5)
    for split in ("train", "test"):
        place = folder / split
        place.mkdir()
        rows = []
        for n in range(40):
            word, frames = "AB"[n % 2], int(rng.integers(8, 14))
            slope = np.linspace(-1, 1, frames)[:, None] * [1.0 if word == "A" else -1.0, 0.0]
            rows.append((f"s{n // 10}-{n:02d}", word, (rng.normal(size=(frames, 2)) + slope).astype(np.float32)))
        (place / "text").write_text("".join(f"{name} {word}\n" for name, word, _ in rows))
        (place / "utt2spk").write_text("".join(f"{name} {name[:2]}\n" for name, _, _ in rows))
        features.write_ark(place / "feats.ark", place / "feats.scp", [(name, x) for name, _, x in rows])
        record.write(place, "make_mfcc", [], None, {}, ["feats.ark"], 0.0, {})
    meta = {"features": features.read_options(folder / "train")}
    (folder / "ml").mkdir()
    write_model(folder / "ml" / "model.npz", flat_start(whole_words("AB"), 3, np.zeros(2), np.ones(2), meta=meta))
    record.write(folder / "ml", "train_ml", [], None, {}, ["model.npz"], 0.0, {})
    return folder


def test_word_kernels_see_what_the_models_do_not(root, letters):
    from margo.tasks.word_kernels import read_pairs

    call(root, letters, "train_word_kernel", "--init", "ml", "--data", "train", "--space", "llr-mean", "--iterations",
         10, "--length", 0.1, "--per-frame", "false", "--out", "kernel")  # fmt: skip
    assert read_pairs(letters / "kernel", 2)[0] == {
        "format": "margo-word-kernel-2", "space": "llr-mean", "per_frame": False, "pairs": 1
    }  # fmt: skip
    lines = [json.loads(line) for line in (letters / "kernel" / "pairs.jsonl").read_text().splitlines()]
    assert all(line["change"] <= 0 for line in lines) and lines[-1]["objective"] < lines[0]["objective"]
    call(root, letters, "test_word_kernel", "--model", "kernel", "--data", "train", "test", "--out", "scored")
    for system, line in (("svm-llr-mean-init", lines[0]), ("svm-llr-mean", lines[-1])):
        row = json.loads((letters / "scored" / f"{system}_1" / "test" / "score.json").read_text())
        assert (row["metric"], row["total"], row["system"]) == ("wer", 40, system)
        again = json.loads((letters / "scored" / f"{system}_1" / "train" / "score.json").read_text())
        assert again["errors"] == line["train_errors"]  # the scores that a file makes are those that were trained on
        assert row["errors"] <= 8  # the models alone, alike for both words, would make 20
    table = json.loads((letters / "scored" / "plots.json").read_text())[0]
    pair, tokens, by_models, *_ = table["cells"][0]
    assert (pair, tokens, by_models) == ("A B", "40", "20")
    assert "more than one word" in call(root, letters, "train_word_kernel", "--init", "ml", "--data", spoiled(letters),
                                        "--out", "x", expect=1)  # fmt: skip


def test_all_schemes_on_the_scores_of_all_words(root, letters):
    call(root, letters, "compare_word_schemes", "--init", "ml", "--data", "train", "--test", "test", "--out",
         "schemes", "--task", "letters")  # fmt: skip
    for scheme in ("pairs", "rest", "codes", "joint", "each"):
        row = json.loads((letters / "schemes" / f"svm-ll-mean-{scheme}_1" / "test" / "score.json").read_text())
        assert row["total"] == 40 and row["errors"] <= 10 and row["task"] == "letters"
    assert json.loads((letters / "schemes" / "plots.json").read_text())[0]["title"] == "All-in-one machines, letters"


@pytest.mark.parametrize("changed", [{"metric": "none"}, {"window": 0}, {"per_frame": False}, {"weights": True}])
def test_a_pair_of_words_is_trained_as_the_options_say(changed):
    """The mistake is an option that the step takes and training does not get."""
    from margo.kernel.descent import KernelOptions
    from margo.kernel.hmm_scorespace import Frames
    from margo.model.hmm import flat_start, whole_words
    from margo.tasks.word_kernels import train_chunk

    rng = np.random.default_rng(8)
    hmms = flat_start(whole_words("AB"), 3, np.zeros(2), np.ones(2))
    hmms = hmms.with_pool(replace(hmms.pool, means=rng.normal(size=hmms.pool.means.shape)))
    bounds = np.concatenate([[0], np.cumsum(rng.integers(6, 12, 30))])
    frames = Frames(rng.normal(size=(bounds[-1], 2)), bounds, np.empty((bounds[-1], 0)))
    signs = np.where(np.arange(30) % 2, 1, -1)

    def trained(window=-1, per_frame=True, **changes):
        own = KernelOptions(space="llr-mean", iterations=2, **changes)
        options = SimpleNamespace(**vars(own), whole_space=own.whole_space, window=window, per_frame=per_frame)
        _, _, made, lines = train_chunk(hmms, options, ((0, 1), frames, signs))
        return len(made.weights), lines[1]["objective"]

    width, objective = trained()
    other_width, other = trained(**changed)
    assert other_width - width == (6 if "weights" in changed else 0)
    assert abs(other - objective) > 1e-6 * objective or "weights" in changed  # one Gaussian a state: they score nothing


def test_few_pairs_are_asked_and_the_vote_is_that_of_all(monkeypatch):
    """Of four words: the decisions of the word said and the vote are those of all pairs asked, of fewer utterances."""
    from margo.kernel.hmm_pairs import WordPair
    from margo.kernel.hmm_scorespace import Frames, score, to_vector, word_model
    from margo.kernel.multiclass import pairs, vote
    from margo.model.hmm import flat_start, whole_words
    from margo.tasks import word_kernels

    rng = np.random.default_rng(6)
    hmms = flat_start(whole_words("ABCD"), 3, np.zeros(2), np.ones(2))
    hmms = hmms.with_pool(replace(hmms.pool, means=rng.normal(size=hmms.pool.means.shape)))
    bounds = np.concatenate([[0], np.cumsum(rng.integers(6, 10, 60))])
    frames = Frames(rng.normal(size=(bounds[-1], 2)), bounds, np.empty((bounds[-1], 0)))
    labels, models, made, asked = rng.integers(0, 4, 60), [word_model(hmms, word) for word in "ABCD"], [], []
    for a, b in pairs(4):
        start = [models[a], models[b]]
        theta, width = to_vector(start, start), score(start, frames, "llr-mean")[0].shape[1]
        both = [WordPair(theta + noise, 0.3 * rng.normal(size=width) + 4 * np.eye(width)[0], np.zeros(1))
                for noise in (0.0, 0.3 * rng.normal(size=len(theta)))]  # fmt: skip
        made.append(((a, b), *both))
    every = np.stack([trained.decide([models[a], models[b]], frames, "llr-mean", True)
                      for (a, b), _, trained in made], axis=1)  # fmt: skip
    decide = WordPair.decide
    monkeypatch.setattr(WordPair, "decide", lambda self, start, some, *rest: (
        asked.append(some.count) or decide(self, start, some, *rest)))  # fmt: skip
    monkeypatch.setattr(word_kernels, "chunk_frames", lambda hmms, chunk: chunk)
    meta = {"space": "llr-mean", "per_frame": True}
    _, _, (before, after, log_lik) = word_kernels.decide_chunk(hmms, meta, made, (frames, ["u"] * 60, labels, []))
    np.testing.assert_array_equal(vote(after, log_lik), vote(every, log_lik))
    assert (vote(before, log_lik) != vote(every, log_lik)).any()  # some leaders are beaten
    for column, (a, b) in enumerate(pairs(4)):
        own = (labels == a) | (labels == b)
        np.testing.assert_allclose(after[own, column], every[own, column], rtol=1e-9)
    assert sum(asked) < 0.9 * every.size and not np.allclose(after, every)


def spoiled(letters):
    """The training folder with one transcript of two words."""
    import shutil

    place = letters / "spoiled"
    shutil.copytree(letters / "train", place)
    text = (place / "text").read_text()
    (place / "text").write_text(text.replace(" A\n", " A B\n", 1))
    return place


def test_wrong_inputs_are_named(folder, root, tmp_path):
    assert "is not complete" in call(root, folder, "test_kernel", "--model", "nothing", "--data", "vowels.csv", "--out",
                                     tmp_path / "x", expect=1)  # fmt: skip
    assert "--cost is -1" in call(root, folder, "train_kernel", "--data", "vowels.csv", "--cost", -1, "--out",
                                  tmp_path / "x", expect=2)  # fmt: skip
    path = tmp_path / "bad.csv"
    path.write_text("split,class,f0\ntrain,0,1.5\ntrain,2,x\ndev,0,1\ntrain,1\n")
    with pytest.raises(MargoError) as caught:
        read_samples(path)
    for part in ("line 3: a cell is 'x'", "line 4: split is 'dev'", "line 5: 2 cells, the header has 3"):
        assert part in str(caught.value)
    path.write_text("split,class,f0\ntrain,0,1.5\ntrain,2,1\ntest,0,1\n")
    with pytest.raises(MargoError, match="class 1 has no train rows"):
        read_samples(path)


def test_samples_survive_their_file(tmp_path):
    rng = np.random.default_rng(4)
    part = Samples(rng.normal(size=(5, 3)), np.arange(5) % 2, np.array(list("abcab")))
    write_samples(tmp_path / "s.csv", {"train": part, "test": part})
    again = read_samples(tmp_path / "s.csv")["test"]
    np.testing.assert_array_equal(again.x, part.x)
    assert again.y.tolist() == part.y.tolist() and again.groups.tolist() == part.groups.tolist()


def test_margins_stand_beside_the_paper_s(folder, root, tmp_path):
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "svm-llr_2").symlink_to(folder / "model")
    place, paper = tmp_path / "kernel" / "svm-llr_2", tmp_path / "paper.toml"
    paper.write_text("""paper = "p"
reference = "r"
protocol = "q"
[[table]]
source = "s"
metric = "objective"
set = "train"
mixtures = [2]
percent = { svm-llr-init = [477.1], svm-llr = [265.8] }
""")
    call(root, tmp_path, "show_margins", "--models", place, "--curves", place, "--paper", paper, "--out", "margins")
    table, steps_table, plot = json.loads((tmp_path / "margins" / "plots.json").read_text())
    lines = [json.loads(line) for line in (folder / "model" / "pairs.jsonl").read_text().splitlines()]
    first = np.mean([line["objective"] for line in lines if line["iteration"] == 0])
    name, mixtures, before, after, *_, support, steps = table["cells"][0]
    assert (name, mixtures, before) == ("svm-llr", "2", f"{first:.1f} (477.1)") and after.endswith("(265.8)")
    last = [[line for line in lines if (line["run"], line["pair"]) == key][-1] for key in
            ((run, pair) for run in (0, 1) for pair in ([0, 1], [0, 2], [1, 2]))]  # fmt: skip
    assert support.endswith(f"-> {np.mean([line['support'] for line in last]):.0f}")
    assert steps == f"{np.mean([line['iteration'] for line in last]):.0f}"
    track = [line["objective"] for line in lines if (line["run"], line["pair"]) == (0, [0, 1])]
    assert plot["series"][0]["y"] == track
    assert steps_table["cells"] == [["svm-llr_2", *(f"{track[min(n, len(track) - 1)]:.1f}" for n in
                                                    (0, 1, 2, 5, 10, 20, 40, 60)), "0"]]  # fmt: skip


def test_rises_of_w_are_counted():
    from margo.tasks.mixture_kernels import descent_table

    lines = [{"run": 0, "pair": [0, 1], "objective": value} for value in (9.0, 7.0, 8.0, 6.0, 6.5)]
    assert descent_table("", [("constant", lines)], (0, 2, 9))["cells"] == [["constant", "9.0", "8.0", "6.5", "2"]]


def test_mmi_never_lowers_the_posteriors_it_starts_with(folder):
    from margo.classify.gmm import Classifier, log_posteriors
    from margo.gaussian.mixtures import log_mixtures
    from margo.kernel.scorespace import fit_mixtures
    from margo.tasks.mixture_kernels import classify_mmi, train_mmi

    train = read_samples(folder / "vowels.csv")["train"]
    pool = fit_mixtures(train.x, train.y, 1, np.random.default_rng(0))
    made = train_mmi(pool, train)

    def objective(model):
        joint = log_mixtures(model.pool, train.x) + model.log_priors
        return log_posteriors(joint)[np.arange(len(train.y)), train.y].sum()

    assert objective(made) > objective(Classifier(pool, np.log(np.full(3, 1 / 3)))) + 0.1
    assert (classify_mmi(made, train.x) == train.y).mean() > 0.5


def test_rivals_differ_in_one_place_and_the_likeliest_counts():
    from margo.tasks.word_kernels import rivals

    best = ("B", "E", "D")
    strings = [(best, -10.0), (("B", "D", "D"), -11.0), (("B", "C", "D"), -12.0), (("V", "T", "D"), -12.5),
               (("B", "E"), -12.6), (("P", "E", "D"), -13.0), (("B", "E", "T"), -20.0)]  # fmt: skip
    assert rivals(best, strings, -np.inf) == {1: "D", 0: "P", 2: "T"}
    assert rivals(best, strings, -15.0) == {1: "D", 0: "P"}


def test_a_pair_s_table_counts_its_own_tokens():
    from margo.tasks.word_kernels import pairs_table

    truth = np.array([0, 0, 1, 2, 2, 1])
    before = np.array([[1.0, 1.0, 9.0], [-1.0, 1.0, 9.0], [1.0, 9.0, 1.0], [9.0, -1.0, 1.0], [9.0, 1.0, -1.0],
                       [-1.0, 9.0, -1.0]])  # fmt: skip
    subsets = ([0, 1], [0, 2], [1, 2])
    lines = [{"run": 0, "pair": pair, "objective": value} for pair in subsets for value in (2, 1)]
    log_lik = np.array([[3, 2, 9], [3, 4, 2], [1, 2, 0], [0, 0, 1], [2, 0, 1], [5, 6, 7]], float)
    cells = pairs_table("t", "ABC", lines, truth, before, -before, log_lik)["cells"]
    assert cells[0] == ["A B", "4", "1", "2", "2", "2.0000", "1.0000"]
    assert [row[2:5] for row in cells[1:]] == [["2", "1", "3"], ["1", "2", "2"]]
