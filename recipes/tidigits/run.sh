#!/usr/bin/env bash
# Connected digits: TIDIGITS, eleven whole-word models, after [LJ07] section V-B.
#
# Usage: recipes/tidigits/run.sh [--option value ...]
#   --corpus DIR     the adults of TIDIGITS as on the LDC discs; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --protocol paper [LJ07]'s: train on all training strings (8623), no dev set: training data choose what dev would;
#                    default: of the training speakers every fifth is dev
#   --radii "..."    values of r^2 / K that stage 9 holds LME's ball at (none: it is left out; [LJ07] has 0.001 to 0.006)
source "$(dirname "$0")/../../steps/speech.sh"
protocols="default paper"
with_sweep ""
parse_options "$@"

make_data() {
    corpus_or_embedded
    run tidigits_data --corpus "$corpus" --partial "$partial" --protocol "$protocol" --out "$exp/data"
}

speech_stages
