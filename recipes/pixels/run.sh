#!/usr/bin/env bash
# Pixels of hyperspectral images: GMM classifiers by likelihood, conditional likelihood and margin, after [PW10] 5.3.
#
# Usage: recipes/pixels/run.sh [--option value ...]
#   --corpus FILE    a cube of height x width x bands (.npy, .mat, .tif), with --labels FILE; without it, Indian Pines
#   --split blocks   parts of the image that do not touch, or random: pixels at random, as in the paper
#   --draws N        drawings of the missing bands (5; the paper has 100)
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="maximum likelihood" [11]="conditional likelihood and margin" [13]="references"
    [14]="missing bands" [17]="score" [18]="report")
offers="gmm-ml gmm-cl gmm-mm"
mix="1 3 5 10"
criteria=$offers
labels=""
split=blocks
name=""
draws=5
options+=(mix criteria labels split name draws)
parse_options "$@"

train() { run "$1" "${confs[@]}" --seed "$seed" --data "$exp/data" "${@:2}"; }

fit_discriminative() {  # fit_discriminative <system> <mixtures>: the scale of the margin is searched on dev
    local -a space=(factor=5,20) of=(${options_of[$1]})
    case $1 in gmm-mm) space=(exponent=0.003,0.01,0.03,0.1) ;; esac
    train tune --trainer train_ebw --init "$exp/gmm-ml_$2" --fixed criterion="${of[1]}" iterations=60 \
        --space "${space[@]}" --out "$exp/tune/$1_$2"
    train train_ebw --init "$exp/gmm-ml_$2" --conf "$exp/tune/$1_$2/best.toml" --overwrite "$overwrite" \
        --out "$exp/$1_$2"
}

if stage 0; then
    run pixels_data --corpus "$corpus" ${labels:+--labels "$labels"} --name "$name" --split "$split" --seed "$seed" \
        --out "$exp/data"
fi

if stage 10; then
    for m in $mix; do beside train train_gmm --mixtures "$m" --out "$exp/gmm-ml_$m"; done
    all_done
fi

if stage 11; then
    for m in $mix; do
        for system in $(wanted_in 11); do beside fit_discriminative "$system" "$m"; done
    done
    all_done
fi

if stage 13; then
    run test_peers --systems svm-rbf --data "$exp/data" --seed "$seed" --out "$exp/test/references"
fi

if stage 14; then  # [PW10] Figure 5(d)
    run sweep_missing --model $(for system in $criteria; do echo "$exp/${system}_${mix##* }"; done) --data "$exp/data" \
        --repeats "$draws" --references svm-rbf --seed "$seed" --out "$exp/missing"
fi

if stage 17; then  # [PW10] Figure 5(c)
    for m in $mix; do
        for system in $criteria; do
            run test_gmm --model "$exp/${system}_$m" --data "$exp/data" --system "$system" --out "$exp/test/${system}_$m"
        done
    done
fi

if stage 18; then report_results; fi
