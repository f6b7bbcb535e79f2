#!/usr/bin/env bash
# Handwritten digits: max-margin Gaussians after [DA08] and hybrid GMMs after [R18]; any labelled table will do.
#
# Usage: recipes/digits/run.sh [--option value ...]
#   --corpus PATH    usps.h5, a folder with MNIST's four idx files, or a .csv table with a label column; without it,
#                    scikit-learn's embedded digits
#   --label NAME     label column of a .csv table (label, class, target or the last)
#   --references "svm-rbf knn mlp"   classifiers of scikit-learn to compare with
#   --epochs 25      epochs of hybrid training
#   --labels "100 250 500"   numbers of labels of the semi-supervised stage
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="maximum likelihood" [11]="max-margin" [12]="hybrid" [13]="references" [14]="missing features"
    [15]="few labels" [16]="score" [17]="report")
offers="gmm-ml mm-grad mm-smo hybrid-ll hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll"
mix="1 2 4"
criteria=$offers
references="svm-rbf knn mlp"
label=""
epochs=25
labels="100 250 500"
options+=(mix criteria references label epochs labels)
parse_options "$@"
source "$root/recipes/digits/training.sh"

if stage 0; then
    run digits_data --corpus "$corpus" --label "$label" --seed "$seed" --out "$exp/data"
fi

if stage 10; then
    for m in $mix; do
        for system in $(wanted_in 10); do beside fit_ml "$system" "$m"; done
    done
    all_done
fi

if stage 11; then
    for m in $mix; do beside fit_margin "$m"; done
    all_done
fi

if stage 12; then
    for m in $mix; do
        for system in $(wanted_in 12); do beside fit_hybrid "$system" "$m"; done
    done
    all_done
fi

if stage 13; then
    run test_peers --systems $references --data "$exp/data/pca" --seed "$seed" --out "$exp/test/references"
fi

if stage 14 hybrid-ll-lm; then  # [R18] Figure 3: how much likelihood it takes to bear gaps
    for part in 0 0.1 0.5 0.9; do
        beside retrain_hybrid hybrid-ll-lm "${mix##* }" --generative $part --out "$exp/generative/lambda_$part"
    done
    all_done
    run sweep_missing --model "$exp/hybrid-ll_${mix##* }" "$exp"/generative/lambda_{0,0.1,0.5,0.9} \
        --data "$exp/data/white" --seed "$seed" --out "$exp/missing"
fi

if stage 15; then
    train sweep_labels --labels $labels --data "$exp/data/white" --out "$exp/labels"
fi

if stage 16; then
    for m in $mix; do
        for system in $criteria; do
            run test_gmm --model "$exp/${system}_$m" --data "$(data_of "$system")" --system "$system" \
                --out "$exp/test/${system}_$m"
        done
    done
fi

if stage 17; then report_results; fi
