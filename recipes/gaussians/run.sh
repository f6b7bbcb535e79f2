#!/usr/bin/env bash
# Artificial data: two classes of three Gaussians each, generative kernels of fewer, after [L04] section 6.1.
#
# Usage: recipes/gaussians/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 10 kernels, 11 their scores,
#                               12 metrics and costs, 13 references, 14 report
#   --exp DIR        where everything is written (exp/gaussians)
#   --mix "1 2"      Gaussians per class
#   --criteria "svm-llr svm-llr-mean svm-llr-mean-var"   score-spaces to train, score and report
#   --runs N         drawings of the data (5); figures are their mean
#   --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results
#   --seed N         seed of everything random (0)
source "$(dirname "$0")/../../steps/recipe.sh"
mix="1 2"
criteria="svm-llr svm-llr-mean svm-llr-mean-var"
runs=5
options+=(mix criteria runs)
parse_options "$@"

train() {  # train <system> <mixtures> [option ...]
    local name=$1 m=$2; shift 2
    work train_kernel --data "$exp/data" --mixtures "$m" --seed "$seed" "$@" --out "$exp/kernel/${name}_$m"
}

score() {  # score <system> <mixtures> [option ...]
    local name=$1 m=$2; shift 2
    run test_kernel --model "$exp/kernel/${name}_$m" --data "$exp/data" --system "$name" "$@" \
        --out "$exp/score/${name}_$m"
}

if stage 0; then
    run gaussians_data --runs "$runs" --seed "$seed" --out "$exp/data"
fi

if stage 10; then  # Tables 2 and 3, Figures 6 and 7
    for m in $mix; do
        for system in $criteria; do
            train "$system" "$m" --space "${system#svm-}"
            run plot_kernel --model "$exp/kernel/${system}_$m" --data "$exp/data/run0.csv" --out "$exp/plots/${system}_$m"
        done
    done
fi

if stage 11; then
    for m in $mix; do
        ml=true
        for system in $criteria; do score "$system" "$m" --ml "$ml"; ml=false; done
    done
fi

if stage 12; then  # Table 3's block-diagonal metric, Table 4's costs
    for m in $mix; do
        for space in llr-mean llr-mean-var; do
            train "svm-$space-block" "$m" --space "$space" --metric block
            score "svm-$space-block" "$m"
        done
        for cost in 0.1 10 100; do
            train "svm-llr-mean-var-c$cost" "$m" --space llr-mean-var --cost "$cost"
            score "svm-llr-mean-var-c$cost" "$m"
        done
    done
fi

if stage 13; then
    run test_references --data "$exp/data" --systems bayes svm-linear --out "$exp/score/references"
fi

if stage 14; then
    report_results
fi
