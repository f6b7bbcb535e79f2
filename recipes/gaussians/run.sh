#!/usr/bin/env bash
# Artificial data: two classes of three Gaussians each, generative kernels of fewer, after [L04] section 6.1.
#
# Usage: recipes/gaussians/run.sh [--option value ...]
#   --runs N         drawings of the data (5); figures are their mean
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="kernels" [11]="their scores" [12]="other spaces, metrics, costs and steps"
    [13]="references, and objectives side by side" [14]="report")
offers="svm-llr svm-llr-mean svm-llr-mean-var svm-ll svm-fisher svm-fisher1 svm-llr-mean-weight svm-llr-mean-second
    svm-llr-mean-none svm-llr-mean-block svm-llr-mean-var-block svm-llr-mean-var-full svm-llr-mean-var-few
    svm-llr-mean-var-c0.1 svm-llr-mean-var-c10 svm-llr-mean-var-c100 svm-llr-constant svm-llr-constant-short"
mix="1 2"
criteria=${offers//$'\n'   /}
runs=5
options+=(mix criteria runs)
parse_options "$@"

train() {  # train <system> <mixtures>
    work "${step_of[$1]}" --data "$exp/data" --mixtures "$2" --seed "$seed" ${options_of[$1]} --out "$exp/kernel/$1_$2"
}

score() {  # score <system> <mixtures> [option ...]
    run test_kernel --model "$exp/kernel/$1_$2" --data "$exp/data" --system "$1" "${@:3}" --out "$exp/score/$1_$2"
}

if stage 0; then
    run gaussians_data --runs "$runs" --seed "$seed" --out "$exp/data"
fi

if stage 10; then  # Tables 2 and 3, Figures 6 and 7
    for m in $mix; do
        for system in $(wanted_in 10); do
            train "$system" "$m"
            run plot_kernel --model "$exp/kernel/${system}_$m" --data "$exp/data/run0.csv" --out "$exp/plots/${system}_$m"
        done
    done
fi

if stage 11; then
    for m in $mix; do
        ml=true
        for system in $(wanted_in 10); do score "$system" "$m" --ml "$ml"; ml=false; done
    done
fi

if stage 12; then  # section 4's other spaces, metrics (Table 3's block-diagonal), Table 4's costs, Figure 4's steps
    for m in $mix; do
        for system in $(wanted_in 12); do train "$system" "$m"; score "$system" "$m"; done
    done
fi

if stage 13; then
    run test_references --data "$exp/data" --systems bayes svm-linear --out "$exp/score/references"
    models=() curves=()
    for system in $criteria; do
        for m in $mix; do models+=("$exp/kernel/${system}_$m"); done
        case $system in svm-llr|svm-llr-constant*) curves+=("$exp/kernel/${system}_${mix%% *}") ;; esac
    done
    run show_margins --models "${models[@]}" ${curves:+--curves "${curves[@]}"} --paper "$root/conf/paper/gaussians.toml" \
        --title "Objective, margin, support vectors and steps ([L04] Tables 3 and 4)" --out "$exp/margins"
fi

if stage 14; then report_results; fi
