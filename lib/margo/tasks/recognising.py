"""Audio files to words with a trained model's folder alone."""

from margo.errors import MargoError
from margo.formats.audio import read_audio
from margo.formats.models import read_model
from margo.formats.reading import file_in
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, weighed_grammar
from margo.search.confidence import confidences
from margo.search.viterbi import viterbi
from margo.signal.front_end import options_of
from margo.signal.mfcc import compute_features
from margo.signal.times import boundary_times


class Recogniser:
    """A model compiled for use: :meth:`transcribe` one file at a time."""

    def __init__(self, folder, confidence_scale: float):
        path = file_in(folder, "model.npz")
        self.hmms = read_model(path)
        self.options = options_of(self.hmms.meta["features"], str(path))
        if self.options.cmvn == "speaker":
            raise MargoError(f"{folder}: the model expects features normalised per speaker, which one file cannot give")
        self.graph = recognition_graph(self.hmms)
        self.weighed = recognition_graph(weighed_grammar(self.hmms, confidence_scale))  # as the frames' scores are
        self.scorer = scorer(self.hmms.pool, self.graph.states)
        self.scale = confidence_scale

    def transcribe(self, file, channel: int | None = None) -> dict:
        """``{"text", "score", "seconds", "words": [{"word", "start", "duration", "confidence"}]}`` of an audio file.

        ``channel`` (from 0) is the one to take of several.
        """
        samples, rate = read_audio(file, rate=self.options.sample_rate, channel=channel)
        try:
            x = self.hmms.padded(compute_features(samples, rate, self.options))
        except MargoError as error:  # of samples, which do not know where they came from
            raise MargoError(f"{file}: {error}") from None
        scores = log_likelihoods(self.scorer, x)
        path = viterbi(self.graph, scores)
        if path is None:
            raise MargoError(f"{file}: {len(x)} frames are too few for any word of the model")
        at = boundary_times(self.hmms.meta["features"], len(x))
        sure = confidences(self.weighed, scores, path.words, self.scale)
        words = [
            {
                "word": self.hmms.words[segment.index],
                "start": round(float(at[segment.start]), 3),
                "duration": round(float(at[segment.end] - at[segment.start]), 3),
                "confidence": round(float(confidence), 4),
            }
            for segment, confidence in zip(path.words, sure)
        ]
        text = " ".join(path.word_names)
        return {"text": text, "score": round(path.score, 4), "seconds": round(len(samples) / rate, 3), "words": words}
