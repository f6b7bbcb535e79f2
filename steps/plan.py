"""Check what a recipe is asked for against the table of systems, and print what its stages need to know of it.

Used by steps/recipe.sh. Prints lines of words with tabs between, "-" for nothing: `fault MESSAGE` where something is
wrong; `path NAME VALUE`, made absolute; `stage NUMBER TITLE` of the stages that speech recipes share; and `system NAME
STAGE STEP STARTS READS OPTIONS WHAT`, in the order of the table, of each that --criteria takes.

Example: steps/plan.py --recipe tidigits --offers hmm --criteria "ml mce" --mix "1 2" --exp exp/tidigits
"""

from dataclasses import dataclass

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    recipe: str = knob(help="name of the recipe")
    offers: str = knob(help="systems and families of them that the recipe takes, with spaces between")
    criteria: str = knob(help="systems asked for")
    mix: str | None = knob(None, "numbers of Gaussians asked for, where the recipe has any")
    systems: str = knob("", "table that adds to conf/systems.toml or replaces rows of it")
    exp: str = knob(help="folder of the run, in which models may be already")
    corpus: str = knob("", "corpus asked for")
    table: str = knob("", "configuration file of the recipe's --conf")


def run(options: Options, step):
    import os
    from itertools import chain
    from pathlib import Path

    from margo.errors import MargoError
    from margo.formats.systems import read_systems
    from margo.runtime.options import read_conf
    from margo.runtime.step import programs
    from margo.tasks.planning import faults, offered, place_faults

    try:
        systems = read_systems(options.systems)
    except MargoError as error:
        print("fault", "; ".join(str(error).split("\n  ")), sep="\t")
        return
    rows = offered(systems, options.offers.split())
    mix = None if options.mix is None else options.mix.split()
    exp = Path(options.exp)
    found = chain(faults(systems, rows, options.criteria.split(), mix, exp), place_faults(exp, options.recipe))
    for fault in found:
        print("fault", fault, sep="\t")
        break
    beside = programs(Path(options.systems or __file__))
    if wrong := options.table and read_conf(Path(options.table), step.name, Options, beside)[1]:
        print("fault", f"--conf {'; '.join(wrong)}", sep="\t")  # all of it, before anything is trained
    paths = {"exp": options.exp, "corpus": options.corpus, "systems": options.systems, "conf": options.table}
    for name, path in paths.items():  # from where the caller is, one spelling of each: models remember them
        if path:
            print("path", name, os.path.abspath(path), sep="\t")
    if any(row.family == "hmm" for row in rows.values()):
        for stage in systems.stages.values():
            print("stage", stage.number, stage.title, sep="\t")
    for row in rows.values():
        starts = " ".join(filter(None, (row.start, *row.also)))
        told = (row.step, starts, " ".join(row.reads), " ".join(row.words), row.what)
        print("system", row.name, row.stage, *(word or "-" for word in told), sep="\t")


if __name__ == "__main__":
    main(__doc__, Options, run)
