"""Recognise the utterances of one or more feature folders with a model; writes OUT/<set>/hyp.

A set is named after its feature folder. The model's own grammar is used, or that of --lm, with the model's weights
unless others are given here; scores are log-likelihoods of the best path. --ctm and --textgrid tell when each word was
said. --penalties (and --scales) also count the errors under each of them, where there are transcripts, as a table in
OUT/<set>/weights.

Example: steps/decode.py --model exp/tidigits/mce_1 --data exp/tidigits/mfcc/dev exp/tidigits/mfcc/test \
--out exp/tidigits/decode/mce_1
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Parallel, knob, main


@dataclass(frozen=True)
class Options(Parallel):
    model: Path = knob(help="folder of the model")
    data: tuple[Path, ...] = knob(help="feature folders")
    out: Path = knob(help="folder to write")
    beam: float | None = knob(
        None, "give up states this far under the best of their frame; 0 searches everything, which a small vocabulary "
        "does by itself", least=0, unit="nats",
    )  # fmt: skip
    max_active: int | None = knob(
        None, "of a frame's states follow only the best so many (histogram pruning); 0 for all, likewise", least=0
    )  # fmt: skip
    lm: Path | None = knob(None, "recognise by this ARPA file, JSGF grammar or HTK word network, not the model's own")
    insertion_penalty: float | None = knob(None, "added to the score for every word, instead of the model's own")
    scale: float | None = knob(None, "factor of a bigram's log probabilities, instead of the model's own", above=0)
    ctm: bool = knob(False, "write <set>/hyp.ctm too: words with times and confidences")
    textgrid: bool = knob(False, "write <set>/textgrid/<utterance>.TextGrid too: words and units for Praat")
    confidence_scale: float | None = knob(None, "acoustic scale of the confidences (default: the model's, else 0.1)",
                                          above=0)  # fmt: skip
    penalties: tuple[float, ...] = knob((), "insertion penalties to count errors with, a table for each set")
    scales: tuple[float, ...] = knob((), "scales of a bigram to count errors with", above=0)


def run(options: Options, step):
    from functools import partial

    from margo.errors import MargoError
    from margo.formats.atomic import file_name, write_text
    from margo.formats.grammars import read_grammar
    from margo.formats.transcripts import write_transcripts
    from margo.model.grammar import with_table, with_weights
    from margo.runtime.parallel import map_chunks
    from margo.tasks import passes, speech, tuning
    from margo.tasks.recognising import confidence_of

    step.input(options.model, made_by="train_ml")
    names = [file_name(folder.resolve().name) for folder in options.data]
    if twice := {name for name in names if names.count(name) > 1}:
        raise MargoError(f"--data: several folders are named {', '.join(sorted(twice))}, and so would be their results")
    with step.place() as where:
        for folder, name in zip(options.data, names):
            data = speech.read(step.input(folder, made_by="make_mfcc"))
            hmms = passes.model_for(options.model, data)
            if options.lm:
                hmms = with_table(hmms, read_grammar(step.input_file(options.lm), hmms.words))
            hmms = with_weights(hmms, insertion_penalty=options.insertion_penalty, scale=options.scale)
            limits = passes.Limits(options.beam, options.max_active)
            function = partial(passes.decode, hmms, limits)
            if options.ctm or options.textgrid:
                known = confidence_of(hmms, options.model, options.confidence_scale)
                function = partial(passes.timed_decode, hmms, limits, *known)
            parts = step.progress(map_chunks(function, data.chunks, where), len(data.chunks), f"decode {name}")
            rows = [row for part in parts for row in part]
            if options.ctm or options.textgrid:
                rows = write_times(rows, data, name, options, step)
            lost = [(utterance, "no path fits its frames") for utterance, words, _, _ in rows if words is None]
            speech.check_dropped(lost, data, step)
            write_transcripts(step.output(f"{name}/hyp"), {utterance: words or () for utterance, words, _, _ in rows})
            lines = [f"{utterance} {score:.4f} {frames}\n" for utterance, _, score, frames in rows]
            write_text(step.output(f"{name}/scores"), "".join(lines))
            step.say(f"decode: {options.model.name} on {name}: {len(rows)} utterances")
            if options.penalties or options.scales:
                table = tuning.table(hmms, data, options.penalties, options.scales, where)
                write_text(step.output(f"{name}/weights"), table)
                print(table, end="")


def write_times(found: list, data, which: str, options: Options, step) -> list[tuple]:
    """The files with times, and the rows that decoding without them has."""
    from margo.formats.atomic import file_name
    from margo.formats.ctm import write_ctm
    from margo.tasks import passes

    done = [each for each in found if each]
    if options.ctm:
        write_ctm(step.output(f"{which}/hyp.ctm"), passes.times_of(data.features, done, "words"))
    for utterance in done if options.textgrid else ():
        path = step.output(f"{which}/textgrid/{file_name(utterance.name)}.TextGrid")
        passes.write_grid(path, data.features, utterance)
    return [
        (each.name, tuple(word for word, *_ in each.words), each.score, len(each.states)) if each
        else (item.name, None, -float("inf"), 0) for each, item in zip(found, data.items)
    ]  # fmt: skip


if __name__ == "__main__":
    main(__doc__, Options, run)
