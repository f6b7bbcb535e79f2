"""Audio to words with a trained model's folder alone."""

from dataclasses import replace

import numpy as np

from margo.errors import MargoError
from margo.formats.audio import read_audio
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, weighed_grammar
from margo.model.graph import align_graph, isolated_graph
from margo.search.confidence import confidences
from margo.search.held import word_odds
from margo.search.viterbi import align, viterbi, viterbi_score
from margo.signal.front_end import options_of
from margo.signal.mfcc import compute_features
from margo.signal.quiet_cuts import pieces
from margo.signal.times import boundary_times

SURE = 0.5  # a word that is rather a held sound than a word is left out


class Recogniser:
    """A model compiled for use: :meth:`transcribe` or :meth:`align` one recording at a time.

    A recording is a file's path, a file's bytes, or ``(samples [N], sample rate)``, scaled as 16-bit integers.
    """

    def __init__(self, folder, confidence_scale: float = 0.1):
        path = file_in(folder, "model.npz")
        self.hmms = read_model(path)
        self.options = options_of(self.hmms.meta.get("features", {}), str(path))
        if self.options.cmvn == "speaker":
            raise MargoError(f"{folder}: the model expects features normalised per speaker, which one file cannot give")
        self.graph = recognition_graph(self.hmms)
        self.weighed = recognition_graph(weighed_grammar(self.hmms, confidence_scale))  # as the frames' scores are
        self.scorer = scorer(self.hmms.pool, self.graph.states)
        self.scale = confidence_scale
        self.pause, quiet = None, self.hmms.silence
        if quiet is not None:  # silence from beginning to end, which competes with all that has words
            self.pause = isolated_graph(replace(self.hmms, lexicon={quiet: (quiet,)}, silence=None))

    def transcribe(self, recording, channel: int | None = None) -> dict:
        """``{"text", "score", "seconds", "words": [{"word", "start", "duration", "confidence"}]}`` of a recording.

        ``channel`` (from 0) is the one to take of several. A long recording is taken in pieces, unless the model is of
        single words. Where there is but silence, or sounds held longer than words are, there are no words.
        """
        samples, rate, name = self._samples(recording, channel)
        words, score = [], 0.0
        single = self.hmms.meta.get("grammar", {}).get("kind") == "isolated"
        for first, last in [(0, len(samples))] if single else pieces(samples, rate):
            x = self._features(samples[first:last], rate, name)
            if np.ptp(samples[first:last]) == 0:  # digital silence
                continue
            found, value = self._words(x, name)
            words += [{**word, "start": round(word["start"] + first / rate, 3)} for word in found]
            score += value
        text = " ".join(word["word"] for word in words)
        return {"text": text, "score": round(score, 4), "seconds": round(len(samples) / rate, 3), "words": words}

    def align(self, recording, words, channel: int | None = None) -> dict:
        """As :meth:`transcribe`, where it is known that the ``words`` (a string of them, or their names) were said;
        ``units`` are the models passed through, ``{"unit", "start", "duration"}``."""
        samples, rate, name = self._samples(recording, channel)
        scores = log_likelihoods(self.scorer, self._features(samples, rate, name))
        words = words.split() if isinstance(words, str) else list(words)
        try:
            graph = align_graph(self.hmms, words, self.graph.states)
            path = align(graph, scores)
        except MargoError as error:
            raise MargoError(f"{name}: {error}") from None
        at = boundary_times(self.hmms.meta["features"], len(scores))
        units = [{"unit": self.hmms.units[each.index].name, **_times(at, each)} for each in path.units]
        sure = confidences(self.weighed, scores, path.words, self.scale)
        return {"text": " ".join(words), "score": round(path.score, 4), "seconds": round(len(samples) / rate, 3),
                "words": self._told(path, at, sure), "units": units}  # fmt: skip

    def log_likelihood(self, recording) -> float:
        """Score of the best path, of a recording or of finished features [T, D]."""
        x = recording if isinstance(recording, np.ndarray) else self._features(*self._samples(recording, None))
        return viterbi_score(self.graph, log_likelihoods(self.scorer, self.hmms.padded(x) if x is recording else x))

    def _samples(self, recording, channel: int | None) -> tuple[np.ndarray, int, str]:
        if not isinstance(recording, tuple):
            name = "standard input" if isinstance(recording, bytes) else str(recording)
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

    def _words(self, x: np.ndarray, name: str) -> tuple[list[dict], float]:
        """The words of frames x [T, D] with times in seconds, and the score of the best path."""
        scores = log_likelihoods(self.scorer, x)
        path = viterbi(self.graph, scores)
        if path is None:
            raise MargoError(f"{name}: {len(x)} frames are too few for any word of the model")
        if self.pause is not None:
            quiet = viterbi_score(self.pause, scores[:, np.searchsorted(self.graph.states, self.pause.states)])
            if quiet >= path.score:
                return [], quiet
        odds = word_odds(self.graph, path)
        sure = confidences(self.weighed, scores, path.words, self.scale) * odds
        words = self._told(path, boundary_times(self.hmms.meta["features"], len(x)), sure)
        return [word for word, odd in zip(words, odds) if odd >= SURE], path.score

    def _told(self, path, at: np.ndarray, sure: np.ndarray) -> list[dict]:
        return [{"word": self.hmms.words[each.index], **_times(at, each), "confidence": round(float(confidence), 4)}
                for each, confidence in zip(path.words, sure)]  # fmt: skip


def _times(at: np.ndarray, segment) -> dict:
    start, end = float(at[segment.start]), float(at[segment.end])
    return {"start": round(start, 3), "duration": round(end - start, 3)}
