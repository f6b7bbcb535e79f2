"""Audio to words with a trained model's folder alone."""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import NamedTuple

import numpy as np

from margo.errors import MargoError
from margo.formats.audio import audio_info, read_audio
from margo.formats.grammars import read_grammar
from margo.formats.models import read_model
from margo.formats.reading import file_in, fitting
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, weighed_grammar, with_table
from margo.model.graph import Graph, align_graph, isolated_graph
from margo.model.hmm import HmmSet
from margo.score.boundaries import Correction
from margo.search.confidence import confidences
from margo.search.held import BELIEF, evidence, word_odds
from margo.search.nbest import nbest
from margo.search.placing import units_alone
from margo.search.viterbi import Path, align, viterbi, viterbi_score
from margo.signal.front_end import options_of
from margo.signal.mfcc import compute_features
from margo.signal.pictures import envelope, spectrogram
from margo.signal.quiet_cuts import LONGEST, pieces
from margo.signal.times import boundary_times
from margo.tasks import passes

SCALE = 0.1  # of acoustic scores in confidences, for models that were not calibrated
SURE = 0.02  # a word that is hardly one is left out; less sure ones have little confidence
CHOSEN = {"scale?": float, "belief?": [float]}  # by margo.tasks.calibrating
CELLS = 20_000_000  # frames times nodes of the graph, up to which a runner-up is looked for: 160 MB
COLUMNS, ROWS = 900, 96  # of pictures, at most


Recording = str | PathLike[str] | bytes | tuple[np.ndarray, int]  # a path, a file's bytes, samples with their rate


class Placing(NamedTuple):
    """How boundaries are placed: at the mean over all paths, log-likelihoods scaled (None: where the best path has
    them), less what a correction says that they are late by."""

    scale: float | None = 0.05
    correction: Correction | None = None


class Heard(NamedTuple):
    """A recording of T frames as a model hears it."""

    scores: np.ndarray  # [T, S'] log-likelihoods of the graph's states
    path: Path | None  # None: silence
    score: float
    words: list[dict]
    odds: np.ndarray  # [W] that each is a word


def confidence_of(hmms: HmmSet, path, scale: float | None = None) -> tuple[float, tuple[float, ...]]:
    """``(scale of acoustic scores, belief)`` of a model's confidences: the ``scale`` that is given, else what was
    chosen when it was calibrated; ``path`` is the model's file."""
    chosen = fitting(path, hmms.meta.get("confidence", {}), CHOSEN, "what a model holds of its confidence")
    return scale or chosen.get("scale", SCALE), tuple(chosen.get("belief", BELIEF))


def pause_graph(hmms: HmmSet) -> Graph | None:
    """Silence from beginning to end, which competes with all that has words; None where the model has none."""
    quiet = hmms.silence
    return quiet and isolated_graph(replace(hmms, lexicon={quiet: (quiet,)}, silence=None, crossing=None))


def quiet_score(graph: Graph, pause: Graph | None, scores: np.ndarray) -> float:
    """Score of silence from beginning to end, of the graph's log-likelihoods [T, S']."""
    return viterbi_score(pause, scores[:, np.searchsorted(graph.states, pause.states)]) if pause else -np.inf


class Recogniser:
    """A model compiled for use: :meth:`transcribe` or :meth:`align` one recording at a time.

    ``lm`` is a file of another grammar than the model's own (:mod:`margo.formats.grammars`).

    A recording is a file's path, a file's bytes, or ``(samples [N], sample rate)``, scaled as 16-bit integers.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        confidence_scale: float | None = None,
        lm: str | PathLike[str] | None = None,
        placing: Placing | None = None,
    ):
        path = file_in(folder, "model.npz")
        self.hmms = read_model(path)
        if lm is not None:
            self.hmms = with_table(self.hmms, read_grammar(lm, self.hmms.words))
        self.options = options_of(self.hmms.meta.get("features", {}), str(path))
        if self.options.cmvn == "speaker":  # whose other recordings are not known
            self.options = replace(self.options, cmvn="utterance")
        self.graph = recognition_graph(self.hmms)
        self.scale, self.belief = confidence_of(self.hmms, path, confidence_scale)
        self.weighed = recognition_graph(weighed_grammar(self.hmms, self.scale))  # as the frames' scores are
        self.scorer = scorer(self.hmms.pool, self.graph.states)
        self.usual = self.hmms.pool.usual[self.graph.states]
        self.pause = pause_graph(self.hmms)
        self.placing = placing or Placing()
        self.alone, self.kinds = units_alone(self.hmms), passes.unit_kinds(self.hmms)

    def transcribe(self, recording: Recording, channel: int | None = None) -> dict:
        """``{"text", "score", "seconds", "words": [{"word", "start", "duration", "confidence"}]}`` of a recording.

        ``channel`` (from 0) is the one to take of several. A long recording is taken in pieces, unless the model is of
        single words. Where there is but silence, or sounds held longer than words are, there are no words.
        """
        samples, rate, name = self._samples(recording, channel)
        words, score = [], 0.0
        single = self.hmms.meta.get("grammar", {}).get("kind") == "isolated"
        for first, last in [(0, len(samples))] if single else pieces(samples, rate):
            heard = self._heard(samples[first:last], rate, name)
            kept = (word for word, odd in zip(heard.words, heard.odds) if odd >= SURE)
            words += [{**word, "start": round(word["start"] + first / rate, 3)} for word in kept]
            score += heard.score
        text = " ".join(word["word"] for word in words)
        return {"text": text, "score": round(score, 4), "seconds": round(len(samples) / rate, 3), "words": words}

    def look(self, recording, channel: int | None = None, most: float = LONGEST, name: str = "") -> dict:
        """As :meth:`transcribe` of ``most`` seconds at most, with what can be looked at; ``name`` stands in messages.

        ``wave`` and ``spectrogram`` as :mod:`margo.signal.pictures` has them; ``times`` [T + 1] when frames begin;
        ``path`` a ``[word, state of it]`` a frame, -1 in silence; ``second`` the next best string, its ``path`` and by
        how many nats it is behind (``margin``); ``gain`` [T] by how many the frames so far favour the best;
        ``doubted`` words that were heard and left out.
        """
        info = None if isinstance(recording, tuple) else audio_info(recording, name)
        seconds = info.samples / info.sample_rate if info else len(recording[0]) / recording[1]
        if seconds > most:  # before it is decoded, and so grows
            raise MargoError(f"{name or 'recording'}: lasts {seconds:.1f} s, expected at most {most:g} s")
        samples, rate, name = self._samples(recording, channel, name)
        heard = self._heard(samples, rate, name)
        kept = [word for word, odd in zip(heard.words, heard.odds) if odd >= SURE]
        found = {"text": " ".join(word["word"] for word in kept), "score": round(heard.score, 4), "words": kept,
                 "doubted": [word for word, odd in zip(heard.words, heard.odds) if odd < SURE],
                 "seconds": round(len(samples) / rate, 3), "rate": rate, "path": [], "second": None, "gain": [],
                 "times": boundary_times(self.hmms.meta["features"], len(heard.scores)).round(4).tolist(),
                 "wave": envelope(samples, COLUMNS),
                 "spectrogram": spectrogram(samples, rate, COLUMNS, ROWS)}  # fmt: skip
        if heard.path is not None:
            found["path"] = self._places(heard.path)
            found |= self._runner_up(heard)
        return found

    def _runner_up(self, heard: Heard) -> dict:
        if heard.scores.shape[0] * self.graph.n_nodes > CELLS:
            return {}
        best, *others = nbest(self.graph, heard.scores, 2)
        if not others:
            return {}
        other = align(align_graph(self.hmms, others[0].names, self.graph.states), heard.scores)
        at = boundary_times(self.hmms.meta["features"], len(heard.scores))
        frames = np.arange(len(heard.scores))
        columns = [np.searchsorted(self.graph.states, path.states) for path in (heard.path, other)]
        gain = np.cumsum(heard.scores[frames, columns[0]] - heard.scores[frames, columns[1]])
        words = [{"word": self.hmms.words[each.index], **_times(at, each)} for each in other.words]
        second = {"text": " ".join(others[0].names), "words": words, "path": self._places(other),
                  "margin": round(best.score - others[0].score, 3)}  # fmt: skip
        return {"second": second, "gain": gain.round(2).tolist()}

    def _places(self, path: Path) -> list[list[int]]:
        """``[word, state of it]`` of every frame, both -1 outside of words."""
        places = np.full((len(path.nodes), 2), -1)
        for word in path.words:
            places[word.start : word.end, 0], before = word.index, 0
            for unit in (each for each in path.units if word.start <= each.start < word.end):
                own, frames = self.hmms.units[unit.index].states, slice(unit.start, min(unit.end, word.end))
                places[frames, 1] = before + np.argmax(own == path.states[frames, None], axis=1)
                before += len(own)
        return places.tolist()

    def align(self, recording: Recording, words: str | Sequence[str], channel: int | None = None) -> dict:
        """As :meth:`transcribe`, where it is known that the ``words`` (a string of them, or their names) were said;
        ``units`` are the models passed through, ``{"unit", "start", "duration", "confidence", "deviation"}``: the last
        is that of the start, in seconds; None where times are the best path's."""
        samples, rate, name = self._samples(recording, channel)
        scores = log_likelihoods(self.scorer, self._features(samples, rate, name))
        words = words.split() if isinstance(words, str) else list(words)
        try:
            graph = align_graph(self.hmms, words, self.graph.states)
            path = align(graph, scores)
        except MargoError as error:
            known = self.hmms.words if {*words} - {*self.hmms.words} else ()
            told = f" (it has {' '.join(known[:20])}{' ...' * (len(known) > 20)})" * bool(known)
            raise MargoError(f"{name}: {error}{told}") from None
        aligned = passes.aligned(self.hmms, name, path, scores, (self.weighed, self.scale, self.kinds),
                                 (self.alone, self.placing.scale))  # fmt: skip
        features, correction = self.hmms.meta["features"], self.placing.correction
        at, deviations = passes.row_times(features, aligned, correction), [None] * len(path.units)
        if aligned.deviations is not None:
            rows = passes.boundary_rows(features, aligned, correction)
            deviations = [0.0, *(round(row.deviation, 4) for row in rows)]
        units = [{"unit": unit[0], **_times(at, each), "confidence": round(unit[3], 4), "deviation": deviation}
                 for unit, each, deviation in zip(aligned.units, path.units, deviations)]  # fmt: skip
        return {"text": " ".join(words), "score": round(path.score, 4), "seconds": round(len(samples) / rate, 3),
                "words": self._told(path, at, [word[3] for word in aligned.words]), "units": units}  # fmt: skip

    def log_likelihood(self, recording: Recording | np.ndarray) -> float:
        """Score of the best path, of a recording or of finished features [T, D]."""
        x = recording if isinstance(recording, np.ndarray) else self._features(*self._samples(recording, None))
        return viterbi_score(self.graph, log_likelihoods(self.scorer, self.hmms.padded(x) if x is recording else x))

    def _samples(self, recording, channel: int | None, name: str = "") -> tuple[np.ndarray, int, str]:
        if not isinstance(recording, tuple):
            name = name or ("standard input" if isinstance(recording, bytes) else str(recording))
            return *read_audio(recording, rate=self.options.sample_rate, channel=channel, name=name), name
        samples, rate = recording
        if self.options.sample_rate not in (0, rate):
            raise MargoError(f"samples: sample rate is {rate} Hz, the model expects {self.options.sample_rate} Hz")
        return np.asarray(samples, np.float32), rate, "samples"

    def _features(self, samples: np.ndarray, rate: int, name: str) -> np.ndarray:
        try:
            return self.hmms.padded(compute_features(samples, rate, self.options))
        except MargoError as error:  # of samples, which do not know where they came from
            raise MargoError(f"{name}: {error}") from None

    def _heard(self, samples: np.ndarray, rate: int, name: str) -> Heard:
        """All words of a piece, also those that may be none, with times in seconds."""
        x = self._features(samples, rate, name)
        scores = log_likelihoods(self.scorer, x)
        if np.ptp(samples) == 0:  # digital silence
            return Heard(scores, None, 0.0, [], np.empty(0))
        path = viterbi(self.graph, scores)
        if path is None:
            raise MargoError(f"{name}: {len(x)} frames are too few for any word of the model")
        if (quiet := quiet_score(self.graph, self.pause, scores)) >= path.score:
            return Heard(scores, None, quiet, [], np.empty(0))
        odds = word_odds(evidence(self.graph, scores, path, x, self.usual), self.belief)
        sure = confidences(self.weighed, scores, path.words, self.scale) * odds
        words = self._told(path, boundary_times(self.hmms.meta["features"], len(x)), sure)
        return Heard(scores, path, path.score, words, odds)

    def _told(self, path, at: np.ndarray, sure: np.ndarray) -> list[dict]:
        return [{"word": self.hmms.words[each.index], **_times(at, each), "confidence": round(float(confidence), 4)}
                for each, confidence in zip(path.words, sure)]  # fmt: skip


def _times(at: np.ndarray, segment) -> dict:
    start, end = float(at[segment.start]), float(at[segment.end])
    return {"start": round(start, 3), "duration": round(end - start, 3)}
