#!/usr/bin/env bash
# From words to phones: CMU's AN4 (spelled words, digits, dates), the ladder of Kaldi's egs/an4 with a dictionary.
#
# Usage: recipes/an4/run.sh [--option value ...]
#   --corpus DIR     AN4 as CMU distributes it (etc and wav); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --folds N        instead of the official test set, N folds of all speakers: a run in EXP/<fold> for each, in which it
#                    is the test set, all of them scored together in EXP/all
#   --fold n         only this run of them, in EXP itself
source "$(dirname "$0")/../../steps/recipe.sh"
source "$root/steps/ladder.sh"
stages=([0]="data" [1]="features" [2]="phones" [10]="phones in context" [11]="LDA and MLLT" [12]="speaker-adaptive training"
    [13]="MCE, MMI and LME on top" [14]="decode and score" [15]="report")
offers="phone"
mix="4"
criteria="mono tri lda sat"
folds=0 fold=""
options+=(mix criteria folds fold)
parse_options "$@"
[[ $folds =~ ^[0-9]+$ ]] || usage_error "--folds is '$folds', expected a whole number"
if (( folds > 0 )) && [ -z "$fold" ]; then source "$root/recipes/an4/each_fold.sh"; fi

if stage 0; then
    corpus_or_embedded
    folding=()
    if (( folds > 0 )); then folding=(--folds "$folds" --fold "$fold"); fi
    run an4_data "${confs[@]}" --corpus "$corpus" --partial "$partial" "${folding[@]}" --out "$exp/data"
fi

if stage 1; then
    for set in $sets; do
        run make_mfcc --conf "$root/conf/mfcc.toml" "${confs[@]}" --data "$exp/data/$set" --out "$exp/mfcc/$set" \
            --nj "$nj" --cluster "$cluster"
    done
fi

if stage 2; then
    for m in $mix; do train mfcc "mono_$m" --lexicon "$exp/data/lexicon.txt" --mixtures "$m"; done
fi

climb 10
