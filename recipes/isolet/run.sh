#!/usr/bin/env bash
# Isolated letters: the E-set of ISOLET (B C D E G P T V Z), nine whole-word models, after [LJ07] section V-A.
#
# Usage: recipes/isolet/run.sh [--option value ...]
#   --corpus DIR     ISOLET as distributed (isolet1 ... isolet5); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --letters all    all 26 letters instead of the E-set (eset)
#   --protocol paper [LJ07]'s: train on the first productions of parts 1 to 4, test on part 5, no dev set: training data
#                    choose what dev would; default: parts 1 to 3 are train, 4 is dev, 5 is test
#   --radii "..."    values of r^2 / K that stage 9 holds LME's ball at ("0.004 0.02 0.1 0.5"); "" leaves it out
#   --spaces "..."   score-spaces of stage 10's kernels, for the first two of --mix ("llr-mean llr-var llr-mean-var")
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="generative kernels on the ML models, after [L04]" [11]="their score, and other ways from pairs to words" [12]="report of all")
protocols="default paper"
letters=eset
spaces="llr-mean llr-var llr-mean-var"
options+=(letters spaces)
with_sweep "0.004 0.02 0.1 0.5"
parse_options "$@"
declare -A kept=([eset]=BCDEGPTVZ [all]=ABCDEFGHIJKLMNOPQRSTUVWXYZ)
declare -A scheme_space=([eset]=ll-mean [all]=ll)  # derivatives of 26 words are too many for machines of all samples
[ -n "${kept[$letters]-}" ] || usage_error "--letters is '$letters', expected eset or all"
read -r -a sizes <<< "$mix"
sizes=("${sizes[@]:0:2}")  # of the kernels

make_data() {
    corpus_or_embedded --letters "$letters"
    run isolet_data --corpus "$corpus" --partial "$partial" --protocol "$protocol" --letters "${kept[$letters]}" --out "$exp/data"
}

speech_stages

if stage 10; then
    for m in "${sizes[@]}"; do
        for space in $spaces; do
            work train_word_kernel --init "$exp/ml_$m" --data "$exp/mfcc/train" --space "$space" --out "$exp/kernel/svm-${space}_$m"
        done
    done
fi

if stage 11; then
    models=() tests=("${folders[@]:1}")
    for m in "${sizes[@]}"; do
        for space in $spaces; do
            models+=("$exp/kernel/svm-${space}_$m")
            work test_word_kernel --model "${models[-1]}" --data "${tests[@]/#/"$exp/mfcc/"}" --seed "$seed" --out "$exp/score/svm-${space}_$m"
        done
    done
    run show_margins --models "${models[@]}" --out "$exp/margins" \
        --title "Kernels of words: objective, margin, support vectors and steps (the paper prints none)"
    work compare_word_schemes --init "$exp/ml_${sizes[0]}" --data "$exp/mfcc/train" --test "$exp/mfcc/test" --seed "$seed" \
        --space "${scheme_space[$letters]}" --out "$exp/score/schemes_${sizes[0]}"
fi

if stage 12; then report_results; fi
