#!/usr/bin/env bash
# Connected digits: TIDIGITS, eleven whole-word models, after [LJ07] section V-B.
#
# Usage: recipes/tidigits/run.sh [--option value ...]
#   --corpus DIR     the adults of TIDIGITS as on the LDC discs; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
source "$(dirname "$0")/../../steps/speech.sh"
parse_options "$@"

make_data() {
    corpus_or_embedded
    run tidigits_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
}

speech_stages
