#!/usr/bin/env bash
# Isolated letters: the E-set of ISOLET (B C D E G P T V Z), nine whole-word models, after [LJ07] section V-A.
#
# Usage: recipes/isolet/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 1 features, 2 maximum likelihood,
#                               3 alignment and N-best, 4 MCE, 5 MMI and MM, 6 LME, 7 decode and score, 8 report;
#                               after [L04]: 10 generative kernels on the ML models, 11 their score, 12 report of all
#   --corpus DIR     ISOLET as distributed (isolet1 ... isolet5); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --exp DIR        where everything is written (exp/isolet)
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
    run isolet_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
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
    work sweep_radius --init "$exp/ml_${mix%% *}" --data "$exp/mfcc/train" --dev "$exp/mfcc/dev" --out "$exp/sweep"
fi

if stage 7; then
    decode_and_score
fi

if stage 8; then
    report_results
fi

if stage 10; then
    for m in ${mix%% *}; do
        work train_word_kernel --init "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/kernel/svm-llr-mean_$m"
    done
fi

if stage 11; then
    for m in ${mix%% *}; do
        work test_word_kernel --model "$exp/kernel/svm-llr-mean_$m" --data "$exp"/mfcc/{train,dev,test} --seed "$seed" \
            --out "$exp/score/svm-llr-mean_$m"
    done
fi

if stage 12; then
    report_results
fi
