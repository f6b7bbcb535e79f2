#!/usr/bin/env bash
# Handwritten digits: max-margin Gaussians after [DA08] and hybrid GMMs after [R18]; any labelled table will do.
#
# Usage: recipes/digits/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 10 maximum likelihood, 11 max-margin,
#                               12 hybrid, 13 references, 14 missing features, 15 few labels, 16 score, 17 report
#   --corpus PATH    usps.h5, a folder with MNIST's four idx files, or a .csv table with a label column; without it,
#                    scikit-learn's embedded digits
#   --label NAME     label column of a .csv table (label, class, target or the last)
#   --exp DIR        where everything is written (exp/digits)
#   --mix "1 2 4"    Gaussians per class
#   --criteria "gmm-ml mm-grad mm-smo hybrid-ll hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll"   systems
#   --references "svm-rbf knn mlp"   classifiers of scikit-learn to compare with
#   --epochs 25      epochs of hybrid training
#   --labels "100 250 500"   numbers of labels of the semi-supervised stage
#   --seed N         seed of everything random (0)
#   --overwrite true replace models that were trained with other settings
source "$(dirname "$0")/../../steps/recipe.sh"
mix="1 2 4"
criteria="gmm-ml mm-grad mm-smo hybrid-ll hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll"
references="svm-rbf knn mlp"
label=""
epochs=25
labels="100 250 500"
options+=(mix criteria references label epochs labels)
parse_options "$@"
train() { run "$@" --conf "$conf" --seed "$seed"; }
hybrids=$(only hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll)

if stage 0; then
    run digits_data --corpus "$corpus" --label "$label" --seed "$seed" --out "$exp/data"
fi

if stage 10; then  # on the training part, to choose settings with dev; then on both
    for m in $mix; do
        for kind in pca white; do
            train train_gmm --mixtures "$m" --data "$exp/data/$kind" --out "$exp/part/$kind-ml_$m"
            train train_gmm --mixtures "$m" --data "$exp/data/$kind" --with-dev --out "$exp/$kind-ml_$m"
        done
    done
fi

if stage 11 mm-grad mm-smo; then
    for m in $mix; do
        train tune --trainer train_margin --data "$exp/data/pca" --init "$exp/part/pca-ml_$m" --folds 4 \
            --fixed gap=0.03 --space cost=3,10 scale=0.25,0.5 --out "$exp/tune/mm_$m"
        for system in $(only mm-grad mm-smo); do
            train train_margin --method "${system#mm-}" --conf "$exp/tune/mm_$m/best.toml" --gap 0.008 --with-dev \
                --data "$exp/data/pca" --init "$exp/pca-ml_$m" --out "$exp/${system}_$m"
        done
    done
fi

if stage 12 hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll; then
    for m in $mix; do
        for system in $hybrids; do
            common=(--objective "${system#hybrid-}" --epochs "$epochs" --data "$exp/data/white" --overwrite "$overwrite")
            train train_hybrid "${common[@]}" --init "$exp/part/white-ml_$m" --out "$exp/part/${system}_$m"
            train train_hybrid "${common[@]}" --init "$exp/white-ml_$m" --epochs-of "$exp/part/${system}_$m" \
                --out "$exp/${system}_$m"
        done
    done
fi

if stage 13; then
    run test_peers --systems $references --data "$exp/data/pca" --seed "$seed" --out "$exp/test/references"
fi

if stage 14; then
    run sweep_missing --model "$exp/white-ml_${mix##* }" $(for s in $hybrids; do echo "$exp/${s}_${mix##* }"; done) \
        --data "$exp/data/white" --seed "$seed" --out "$exp/missing"
fi

if stage 15; then
    train sweep_labels --labels $labels --data "$exp/data/white" --out "$exp/labels"
fi

if stage 16; then
    for m in $mix; do
        for system in $criteria; do
            kind=white; model=$exp/${system}_$m
            case $system in gmm-ml) kind=pca; model=$exp/pca-ml_$m ;; hybrid-ll) model=$exp/white-ml_$m ;; mm-*) kind=pca ;; esac
            run test_gmm --model "$model" --data "$exp/data/$kind" --system "$system" --out "$exp/test/${system}_$m"
        done
    done
fi

if stage 17; then
    report_results
fi
