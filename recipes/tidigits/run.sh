#!/usr/bin/env bash
# Connected digits: TIDIGITS, eleven whole-word models, after [LJ07] section V-B.
#
# Usage: recipes/tidigits/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 1 features, 2 maximum likelihood,
#                               3 alignment and N-best, 4 MCE, 5 MMI and MM, 6 LME, 7 decode and score, 8 report
#   --corpus DIR     the adults of TIDIGITS as on the LDC discs; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --exp DIR        where everything is written (exp/tidigits)
#   --mix "1 2 4"    Gaussians per state
#   --criteria "ml mce mmi mm lme-gd lme-sdp lme-sdp-hard"   systems to train, score and report
#   --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results
#   --seed N         seed of everything random (0)
#   --overwrite true replace models that were trained with other settings
source "$(dirname "$0")/../../steps/recipe.sh"
mix="1 2 4 8"
criteria="ml mce mmi mm lme-gd lme-sdp"
options+=(mix criteria)
parse_options "$@"
work=(--conf "$conf" --nj "$nj" --cluster "$cluster")
train=(--data "$exp/mfcc/train" --dev "$exp/mfcc/dev" --overwrite "$overwrite" "${work[@]}")

if stage 0; then
    corpus_or_embedded
    run tidigits_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
fi

if stage 1; then
    for set in train dev test; do
        run make_mfcc --conf "$root/conf/mfcc.toml" --data "$exp/data/$set" --out "$exp/mfcc/$set" "${work[@]}"
    done
fi

if stage 2; then
    init=""
    for m in $mix; do
        run train_ml --init "$init" --mixtures "$m" --seed "$seed" --out "$exp/ml_$m" "${train[@]}"
        init=$exp/ml_$m
    done
fi

if stage 3; then
    for m in $mix; do
        run align --model "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/ali/ml_$m" "${work[@]}"
        run nbest --model "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/nbest/ml_$m" "${work[@]}"
    done
fi

if stage 4 mce; then
    for m in $mix; do run train_mce --init "$exp/ml_$m" --out "$exp/mce_$m" "${train[@]}"; done
fi

if stage 5 mmi mm; then
    for c in $(only mmi mm); do
        for m in $mix; do run "train_$c" --init "$exp/ml_$m" --out "$exp/${c}_$m" "${train[@]}"; done
    done
fi

if stage 6 lme-gd lme-sdp lme-sdp-hard; then
    for c in $(only lme-gd lme-sdp lme-sdp-hard); do
        for m in $mix; do run train_lme --system "$c" --exp "$exp" --mixtures "$m" --out "$exp/${c}_$m" "${train[@]}"; done
    done
fi

if stage 7; then
    for c in $criteria; do
        for m in $mix; do
            run decode --model "$exp/${c}_$m" --data "$exp/mfcc" --sets train dev test --out "$exp/decode/${c}_$m" "${work[@]}"
            run score --hyp "$exp/decode/${c}_$m" --data "$exp/mfcc" --system "$c" --mixtures "$m"
        done
    done
fi

if stage 8; then
    run report --exp "$exp" --recipe "$recipe"
fi
