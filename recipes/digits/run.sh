#!/usr/bin/env bash
# Handwritten digits: max-margin Gaussians after [DA08] and hybrid GMMs after [R18]; any labelled table will do.
#
# Usage: recipes/digits/run.sh [--option value ...]
#   --corpus PATH    usps.h5 or any HDF5 with data and target, a folder with MNIST's four idx files, .amat files or
#                    CIFAR-10's binary files, or a .csv table with a label column; without it, scikit-learn's digits
#   --label NAME     label column of a .csv table (label, class, target or the last); --test FILE: its test samples
#   --name NAME      what the data set is called, where what it holds or its file do not tell
#   --remake rot     square images turned (rot) or on a random background (back-rand), as in variants of MNIST
#   --components 50  principal components (0: standardised features instead)
#   --rule mixture   how EM's classifiers decide: by the mixture, or by the best Gaussian (component, [DA08] (5))
#   --references "svm-rbf knn mlp"   classifiers of scikit-learn to compare with
#   --size small     of sweeps: the few runs below; paper: the papers' epochs, label counts, draws and searches
#   --epochs 25      epochs of hybrid training
#   --labels "100 250 500"   numbers of labels of the semi-supervised stage; --objectives "ll-lm ll-cll"
#   --lambdas "0 0.1 0.5 0.9"   parts of the likelihood in the figures of [R18]; --draws 5: of missing pixels
#   --ridges "0.01 0.1 1"    lambda of EM in the figures of [DA08]; --steps 1800: of projected gradient in its Figure 1
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="maximum likelihood" [11]="max-margin, EBW" [12]="hybrid" [13]="references"
    [14]="missing pixels and the trade-off, [R18] Figures 1 to 3" [15]="few labels, [R18] Table 2"
    [16]="speed and regularisation, [DA08] Figures 1 to 3" [17]="score" [18]="report")
diagonal="gmm-ml-diagonal hybrid-ll-lm-diagonal hybrid-ll-cll-diagonal hybrid-lm-diagonal hybrid-cll-diagonal"
hybrid="hybrid-ll hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll"
offers="gmm-ml mm-grad mm-grad-every mm-alternate mm-smo $hybrid gmm-cl gmm-mm $diagonal"
mix="1 2 4"
criteria="gmm-ml mm-grad mm-smo $hybrid gmm-cl gmm-mm $diagonal"
references="svm-rbf knn mlp"
test="" label="" name="" remake="" components=50 rule=mixture size=small
epochs="" labels="" objectives="" lambdas="" draws="" ridges="" steps=""
options+=(mix criteria references test label name remake components rule size epochs labels objectives lambdas draws ridges steps)
parse_options "$@"
source "$root/recipes/digits/training.sh"

if stage 0; then
    run digits_data --corpus "$corpus" --test "$test" --label "$label" --name "$name" ${remake:+--remake "$remake"} \
        --components "$components" --seed "$seed" --out "$exp/data"
fi

if stage 10; then
    for m in $mix; do
        for system in $(starts); do beside fit_ml "$system" "$m"; done
    done
    all_done
fi

if stage 11; then
    for m in $mix; do
        if [ -n "$(wanted_in 11 | grep '^mm-' || true)" ]; then beside fit_margin "$m"; fi
        for system in $(only gmm-cl gmm-mm); do beside fit_ebw "$system" "$m"; done
    done
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
source "$root/recipes/digits/figures.sh"

if stage 17; then
    for m in $mix; do
        for system in $criteria; do
            run test_gmm --model "$exp/${system}_$m" --data "$(data_of "$system")" --system "$system" --rule "$rule" \
                --out "$exp/test/${system}_$m"
        done
    done
fi

if stage 18; then report_results; fi
