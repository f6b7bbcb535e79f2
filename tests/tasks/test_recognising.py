"""Audio to words with a model's folder alone, also where large-margin training has given the model a dimension."""

import numpy as np
import soundfile

from margo.estimate.lme.model import move
from margo.formats.models import write_model
from margo.model.grammar import grammar
from margo.model.hmm import flat_start, whole_words
from margo.signal.front_end import MfccOptions, describe
from margo.tasks.recognising import Recogniser


def test_an_augmented_model_recognises(tmp_path):
    rng = np.random.default_rng(0)
    features = describe(MfccOptions(), 8000)
    size = features["dimension"]
    hmms = flat_start(whole_words("abc"), 3, np.zeros(size), np.full(size, 9.0),
                      meta={"features": features, "grammar": grammar("isolated")})  # fmt: skip
    count = hmms.pool.n_gaussians
    hmms = move(hmms, rng.normal(size=(count, size)), np.zeros(count), 1.0)
    wide = move(hmms, np.zeros((count, size)), np.full(count, 4.0), 1.0)
    assert wide.meta["augmented"] and wide.pool.dimension == size + 1
    soundfile.write(tmp_path / "a.wav", 0.1 * rng.normal(size=4000), 8000)
    results = []
    for name, model in (("plain", hmms), ("wide", wide)):
        write_model(tmp_path / name / "model.npz", model)
        results.append(Recogniser(tmp_path / name, 0.1).transcribe(tmp_path / "a.wav"))
    plain, wider = results
    # All Gaussians are as far away in the new dimension, so that only the score falls: by 4 / 2 and log sqrt(2 pi).
    assert wider["words"] == plain["words"] and wider["text"] in ("a", "b", "c")
    frames = (plain["score"] - wider["score"]) / (2 + 0.5 * np.log(2 * np.pi))
    assert frames > 40 and abs(frames - round(frames)) < 1e-3
