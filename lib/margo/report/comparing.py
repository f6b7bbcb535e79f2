"""Two score folders side by side: are they of the same data, and which is better?"""

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.scores import read_per_utt, read_score


def compare_folders(a, b, speakers: Mapping[str, str] | None = None, level: float = 0.05, seed: int = 0) -> dict:
    """Rates, tests and verdict of the score folders ``a`` and ``b``; refuses folders scored on different data."""
    from margo.score.significance import compare

    scores, utterances = [read_score(folder) for folder in (a, b)], [read_per_utt(folder) for folder in (a, b)]
    _refuse_different(a, b, scores, utterances)
    names = sorted(utterances[0])
    groups = None
    if speakers is not None:
        unknown = [name for name in names if name not in speakers]
        refuse([f"{name} has no speaker" for name in unknown], "speakers")
        groups = np.array([speakers[name] for name in names])
    counts = np.array([[of[name][1] for name in names] for of in utterances])  # [2, N, CSID]
    errors, lengths = counts[:, :, 1:].sum(axis=2), counts[0][:, [0, 1, 3]].sum(axis=1)
    compared = compare(errors[0], errors[1], lengths, np.random.default_rng(seed), groups)
    decisive = "mcnemar" if (lengths == 1).all() else "matched_pairs"
    p = getattr(compared, f"p_{decisive}")
    better = None if p > level or compared.difference == 0 else ("b" if compared.difference > 0 else "a")
    return {
        "a": {"folder": str(a), **_row(scores[0])},
        "b": {"folder": str(b), **_row(scores[1])},
        "unit": "utterance" if speakers is None else "speaker",
        "utterances": len(names),
        "utterances_that_differ": int(np.sum(errors[0] != errors[1])),
        **asdict(compared),
        "decisive": decisive,
        "p": p,
        "level": level,
        "better": better,
    }


def _refuse_different(a, b, scores, utterances) -> None:
    faults = []
    for key in ("metric", "map"):
        if scores[0].get(key) != scores[1].get(key):
            faults.append(f"{key}: {scores[0].get(key)} and {scores[1].get(key)}")
    for one, other, names in ((a, b, utterances[0].keys() - utterances[1].keys()),
                              (b, a, utterances[1].keys() - utterances[0].keys())):  # fmt: skip
        if names:
            faults.append(f"{len(names)} utterances are in {one} but not in {other}, such as {min(names)}")
    common = utterances[0].keys() & utterances[1].keys()
    changed = [name for name in common if utterances[0][name][0] != utterances[1][name][0]]
    if changed:
        faults.append(f"{len(changed)} utterances have different references, such as {min(changed)}")
    refuse(faults, f"{a} and {b} were scored on different data")
    for folder, score in ((a, scores[0]), (b, scores[1])):
        if "runs" in score:
            raise MargoError(f"{folder} averages {len(score['runs'])} runs: compare single runs")


def _row(score: dict) -> dict:
    return {key: score[key] for key in ("system", "mixtures", "set", "metric", "percent", "errors", "total", "ci95")}


def table(result: dict) -> str:
    """The comparison for reading."""
    lines = []
    for side in "ab":
        row = result[side]
        low, high = row["ci95"]
        lines.append(
            f"{side.upper()}  {row['system']}_{row['mixtures']} {row['set']}: %{row['metric'].upper()} "
            f"{row['percent']:.2f} [ {row['errors']} / {row['total']} ]  95 % {low:.2f} to {high:.2f}"
        )
    low, high = result["difference_ci95"]
    unit, fewer = result["unit"] + "s", f"{result['a_better']:>10}{result['b_better']:>10}"
    lines += [
        f"A - B: {result['difference']:+.2f} points, 95 % {low:+.2f} to {high:+.2f}; "
        f"B makes fewer errors in {100 * result['p_b_better']:.1f} % of bootstrap samples",
        f"{result['utterances_that_differ']} of {result['utterances']} utterances differ",
        "",
        f"{'test':<32}{'A better':>10}{'B better':>10}{'p':>12}",
        f"{'matched pairs, ' + unit:<32}{fewer}{_p(result['p_matched_pairs']):>12}",
        f"{'sign, ' + unit:<32}{fewer}{_p(result['p_sign']):>12}",
        f"{'McNemar, wrong utterances':<32}{result['only_b_wrong']:>10}{result['only_a_wrong']:>10}"
        f"{_p(result['p_mcnemar']):>12}",
        "",
    ]
    name = {"mcnemar": "McNemar", "matched_pairs": "matched pairs"}[result["decisive"]]
    if result["better"]:
        lines.append(f"{result['better'].upper()} is better ({name}, p = {_p(result['p'])})")
    else:
        lines.append(f"no difference at the level {result['level']:g} ({name}, p = {_p(result['p'])})")
    return "\n".join(lines)


def _p(value: float) -> str:
    return f"{value:.4f}" if value >= 1e-4 else f"{value:.1e}"
