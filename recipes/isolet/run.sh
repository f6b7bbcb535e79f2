#!/usr/bin/env bash
# Isolated letters: the E-set of ISOLET (B C D E G P T V Z), nine whole-word models, after [LJ07] section V-A.
#
# Usage: recipes/isolet/run.sh [--option value ...]
#   --corpus DIR     ISOLET as distributed (isolet1 ... isolet5); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="generative kernels on the ML models, after [L04]" [11]="their score" [12]="report of all")
parse_options "$@"
m=${mix%% *}  # of the sweep and the kernels

make_data() {
    corpus_or_embedded
    run isolet_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
}

after_stage_6() {
    work sweep_radius --init "$exp/ml_$m" --data "$exp/mfcc/train" --dev "$exp/mfcc/dev" --out "$exp/sweep"
}

speech_stages

if stage 10; then
    work train_word_kernel --init "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/kernel/svm-llr-mean_$m"
fi

if stage 11; then
    work test_word_kernel --model "$exp/kernel/svm-llr-mean_$m" --data "$exp"/mfcc/{train,dev,test} --seed "$seed" \
        --out "$exp/score/svm-llr-mean_$m"
fi

if stage 12; then report_results; fi
