"""Models and records in words."""

import json

import numpy as np

from margo.errors import MargoError
from margo.formats.systems import System
from margo.model.hmm import HmmSet


def describe_record(held: dict) -> str:
    rows = [
        f"step       {held['step']}, {held['seconds']:.1f} s, {held['peak_memory_mb']:.0f} MB",
        f"command    {held['step']}.py {' '.join(held['argv'])}",
        f"outputs    {', '.join(sorted(held['outputs'])[:8])}{' ...' if len(held['outputs']) > 8 else ''}",
    ]
    return "\n".join(rows)


def describe_system(row: System) -> str:
    """What the table of systems tells of the folder's."""
    start = f"; starts from {row.start}" if row.start not in ("", row.name) else ""
    return f"system     {row.label}: {row.what}{start}"


def describe_model(hmms: HmmSet) -> str:
    pool, meta = hmms.pool, hmms.meta
    sizes = sorted(set(pool.sizes.tolist()))
    grammar = {key: value for key, value in meta.get("grammar", {}).items() if key != "log_bigram"}
    rows = [
        f"criterion  {meta.get('criterion', 'unknown')}",
        f"words      {len(hmms.words)}: {' '.join(hmms.words[:20])}{' ...' if len(hmms.words) > 20 else ''}",
        f"units      {len(hmms.units)}, silence: {hmms.silence or 'none'}",
        f"states     {pool.n_states} with {' or '.join(map(str, sizes))} Gaussians; {pool.n_gaussians} in all, "
        f"{pool.dimension} dimensions",
        f"grammar    {json.dumps(grammar)}",
        f"features   {json.dumps(meta.get('features', {}))}",
    ]
    return "\n".join(rows)


def describe_unit(hmms: HmmSet, name: str) -> str:
    """Transitions, weights and the first dimensions of means and deviations of a unit."""
    if name not in hmms.unit_index:
        raise MargoError(f"no unit {name}; there are {' '.join(unit.name for unit in hmms.units)}")
    unit, pool = hmms.units[hmms.unit_index[name]], hmms.pool
    rows = [f"unit {name}"]
    for position, state in enumerate(unit.states, 1):
        stay, onward = np.exp(unit.log_transitions[position, position : position + 2])
        rows.append(f"  state {position} (pool {state}): stays {stay:.3f}, goes on {onward:.3f}")
        for k in range(pool.offsets[state], pool.offsets[state + 1]):
            shown = " ".join(f"{m:.2f}±{d:.2f}" for m, d in zip(pool.means[k, :6], np.sqrt(pool.variances[k, :6])))
            rows.append(f"    weight {np.exp(pool.log_weights[k]):.3f}: {shown} ...")
    return "\n".join(rows)
