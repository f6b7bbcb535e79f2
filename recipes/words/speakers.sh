#!/usr/bin/env bash
# What normalising and adapting bring on speakers that a model has not heard: FSDD, each of its speakers left out.
#
# Usage: recipes/words/speakers.sh --corpus DIR [--option value ...]
#   --corpus DIR     the Free Spoken Digit Dataset
#   --exp DIR        a run for each speaker in EXP/<speaker>, all of them scored together in EXP/all
#   --most 20        recordings of each digit and speaker to use (0: all 50)
source "$(dirname "$0")/../../steps/recipe.sh"
offers="ml ml-cmvn ml-vtln ml-map"
criteria="ml ml-cmvn ml-vtln ml-map" exp=${exp%/*}/speakers mix="1" most=20
options+=(mix criteria most)
parse_options "$@"
[ -n "$corpus" ] || usage_error "--corpus is missing, expected the folder of FSDD"
speakers=$(for file in "$corpus"/{recordings/,}*.wav; do file=${file##*/}; file=${file#*_}; echo "${file%_*}"; done | sort -u)
speakers=$(for name in $speakers; do if [ "$name" != "*.wav" ]; then echo "$name"; fi; done)
[ -n "$speakers" ] || usage_error "--corpus $corpus: no recordings DIGIT_SPEAKER_INDEX.wav"

features() {  # features <kind> <set> [option value ...]: data/<set> -> <kind>/<set>
    run make_mfcc --conf "$root/conf/mfcc.toml" "${confs[@]}" --data "$here/data/$2" --out "$here/$1/$2" "${@:3}" \
        --nj "$nj" --cluster "$cluster"
}

train() {  # train <kind> <system>
    for m in $mix; do
        work train_ml --data "$here/$1/train" --dev "$here/$1/dev" --mixtures "$m" --seed "$seed" \
            --overwrite "$overwrite" --out "$here/${2}_$m"
    done
}

make_features() {  # plain ones, and those with statics normalised by speaker
    local set
    for set in train dev test adapt; do
        features mfcc "$set"
        if wanted ml-cmvn; then features cmvn "$set" --cmvn speaker --cmvn-variance true; fi
    done
}

warp() {  # frequencies of all speakers
    local set
    for set in train dev; do
        work find_warps --model "$here/ml_${mix%% *}" --data "$here/data/$set" --out "$here/warps/$set"
        features vtln "$set" --warps "$here/warps/$set"
    done
    train vtln ml-vtln
    # those of the one left out by the model of warped speech, from as many recordings as there are to adapt to
    work find_warps --model "$here/ml-vtln_${mix%% *}" --data "$here/data/adapt" --out "$here/warps/test"
    features vtln test --warps "$here/warps/test"
}

train_all() {
    train mfcc ml
    if wanted ml-cmvn; then train cmvn ml-cmvn; fi
    if wanted ml-vtln; then warp; fi
    if wanted ml-map; then
        for m in $mix; do work adapt --init "$here/ml_$m" --data "$here/mfcc/adapt" --out "$here/ml-map_$m"; done
    fi
}

decode_all() {
    local system kind m
    for system in $criteria; do
        kind=${system#ml-}
        case $system in ml|ml-map) kind=mfcc ;; esac
        for m in $mix; do
            work decode --model "$here/${system}_$m" --data "$here/$kind/test" --out "$here/decode/${system}_$m"
        done
    done
}

runs=()
for speaker in $speakers; do runs+=("$exp/$speaker"); done
each() { for here in "${runs[@]}"; do "$@"; done; }
make_data() { run fsdd_data --corpus "$corpus" --leave-out "${here##*/}" --most "$most" --dev 2 --out "$here/data"; }

if stage 0; then each make_data; fi
if stage 1; then each make_features; fi
if stage 2; then each train_all; fi
if stage 7; then each decode_all; fi
if stage 8; then report_pooled "${runs[@]}"; fi
