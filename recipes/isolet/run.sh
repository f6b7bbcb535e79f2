#!/usr/bin/env bash
# Isolated letters: the E-set of ISOLET (B C D E G P T V Z), nine whole-word models, after [LJ07] section V-A.
#
# Usage: recipes/isolet/run.sh [--option value ...]
#   --corpus DIR     ISOLET as distributed (isolet1 ... isolet5); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --protocol paper [LJ07]'s: train on the first productions of parts 1 to 4, test on part 5, no dev set: training data
#                    choose what dev would; default: parts 1 to 3 are train, 4 is dev, 5 is test
#   --radii "..."    values of r^2 / K that stage 9 holds LME's ball at ("0.004 0.02 0.1 0.5"); "" leaves it out
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="generative kernels on the ML models, after [L04]" [11]="their score, and other ways from pairs to words" [12]="report of all")
protocols="default paper"
with_sweep "0.004 0.02 0.1 0.5"
parse_options "$@"
m=${mix%% *}  # of the kernels

make_data() {
    corpus_or_embedded
    run isolet_data --corpus "$corpus" --partial "$partial" --protocol "$protocol" --out "$exp/data"
}

speech_stages

if stage 10; then
    work train_word_kernel --init "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/kernel/svm-llr-mean_$m"
fi

if stage 11; then
    work test_word_kernel --model "$exp/kernel/svm-llr-mean_$m" --data "${folders[@]/#/"$exp/mfcc/"}" --seed "$seed" \
        --out "$exp/score/svm-llr-mean_$m"
    work compare_word_schemes --init "$exp/ml_$m" --data "$exp/mfcc/train" --test "$exp/mfcc/test" --seed "$seed" \
        --out "$exp/score/schemes_$m"
fi

if stage 12; then report_results; fi
