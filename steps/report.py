"""Write what a run came to: EXP/results.json, results.csv, RESULTS.md and report.html, of every score.json below EXP.

Figures stand beside the paper's (--paper) with their intervals; each system is compared with maximum likelihood and
with the model that it started from. Learning curves come from every progress.jsonl, other plots from any plots.json.
Of the system that is best on dev, the page shows confusions, speakers, and utterances that were got wrong.
Prints the results table and the report's path.

Example: steps/report.py --exp exp/tidigits --recipe tidigits --paper conf/paper/tidigits.toml
"""

from dataclasses import dataclass
from pathlib import Path

from margo.runtime.step import Knobs, knob, main


@dataclass(frozen=True)
class Options(Knobs):
    exp: Path = knob(help="folder of the run")
    recipe: str = knob(help="name of the recipe")
    paper: Path | None = knob(None, "TOML file with the paper's figures")
    command: str = knob("", "command that repeats the run (default: recipes/RECIPE/run.sh)")
    examples: int = knob(6, "wrong utterances of the best system to show with their sound", least=0, most=100)


def run(options: Options, step):
    from dataclasses import replace

    from margo.formats.atomic import write_json, write_text
    from margo.report.collect import collect
    from margo.report.columns import results_csv
    from margo.report.errors_of import details_of
    from margo.report.page import page
    from margo.report.text import console, markdown
    from margo.tasks.examples import examples

    report = collect(options.exp, options.recipe, options.paper, options.command)
    details = details_of(options.exp, report.rows, report.places)
    if details and details.wrong and details.model and options.examples:
        found, reason = examples(details.model, details.data, details.wrong, options.examples)
        details = replace(details, examples=found)
        if not found:
            step.say(f"report: no wrong utterance can be shown: {reason}")
    write_json(options.exp / "results.json", report.results)
    write_text(options.exp / "results.csv", results_csv(report.rows))
    write_text(options.exp / "RESULTS.md", markdown(report))
    write_text(options.exp / "report.html", page(report, details))
    print(console(report))
    print(f"report: {options.exp / 'report.html'}")


if __name__ == "__main__":
    main(__doc__, Options, run)
