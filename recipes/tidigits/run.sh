#!/usr/bin/env bash
# Connected digits: TIDIGITS, eleven whole-word models, after [LJ07] section V-B.
#
# Usage: recipes/tidigits/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 1 features, 2 maximum likelihood,
#                               3 alignment and N-best, 4 MCE, 5 MMI and MM, 6 LME, 7 decode and score, 8 report
#   --corpus DIR     the adults of TIDIGITS as on the LDC discs; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --exp DIR        where everything is written (exp/tidigits)
#   --mix "1 2 4"    Gaussians per state
#   --criteria "ml mce mmi mm lme-gd lme-sdp lme-sdp-hard"   systems to train, score and report
#   --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results
#   --seed N         seed of everything random (0)
#   --overwrite true replace models that were trained with other settings
source "$(dirname "$0")/../../steps/recipe.sh"
speech_defaults
parse_options "$@"

if stage 0; then
    corpus_or_embedded
    run tidigits_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
fi

if stage 1; then
    make_features
fi

if stage 2 ml; then
    train_system ml
fi

if stage 3; then
    align_and_list
fi

if stage 4 mce; then
    train_system mce
fi

if stage 5 mmi mm; then
    for system in $(only mmi mm); do train_system "$system"; done
fi

if stage 6 lme-gd lme-sdp lme-sdp-hard; then
    for system in $(only lme-gd lme-sdp lme-sdp-hard); do train_system "$system"; done
fi

if stage 7; then
    decode_and_score
fi

if stage 8; then
    report_results
fi
