#!/usr/bin/env bash
# From words to phones: CMU's AN4 (spelled words, digits, dates), the ladder of Kaldi's egs/an4 with a dictionary.
#
# Usage: recipes/an4/run.sh [--option value ...]
#   --corpus DIR     AN4 as CMU distributes it (etc and wav); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --folds N        instead of the official test set: every N-th of all speakers, from the one that --fold names
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [1]="features" [2]="phones" [10]="phones in context" [11]="LDA and MLLT" [12]="speaker-adaptive training"
    [13]="MCE, MMI and LME on top" [14]="decode and score" [15]="report")
offers="phone"
mix="4"
criteria="mono tri lda sat"
folds=0 fold=1
options+=(mix criteria folds fold)
parse_options "$@"
sets="train dev test"

train() {  # a model <system>_<m> on features of a kind, from options of its own; dev chooses its grammar's weights
    local kind=$1 out=$2
    work train_ml --data "$exp/$kind/train" --dev "$exp/$kind/dev" --seed "$seed" --overwrite "$overwrite" \
        --out "$exp/$out" "${@:3}"
}

transform_all() {  # LDA and MLLT of m Gaussians: mfcc/<set> -> lda/<m>/<set>
    local set
    work train_lda --init "$exp/mono_$1" --data "$exp/mfcc/train" --out "$exp/lda/transform_$1"
    for set in $sets; do
        run transform_features --transform "$exp/lda/transform_$1" --data "$exp/mfcc/$set" --out "$exp/lda/$1/$set"
    done
}

adapt_all() {  # fMLLR to lda_<m>: lda/<m>/<set> -> sat/<m>/<set>; dev and test by what a first pass recognises
    local set
    work adapt_features --model "$exp/lda_$1" --data "$exp/lda/$1/train" --out "$exp/sat/$1/train"
    work decode --model "$exp/lda_$1" --data "$exp/lda/$1/dev" "$exp/lda/$1/test" --out "$exp/first/lda_$1"
    for set in dev test; do
        work adapt_features --model "$exp/lda_$1" --data "$exp/lda/$1/$set" --hyp "$exp/first/lda_$1/$set" \
            --out "$exp/sat/$1/$set"
    done
}

if stage 0; then
    corpus_or_embedded
    folding=()
    if (( folds > 0 )); then folding=(--folds "$folds" --fold "$fold"); fi
    run an4_data --corpus "$corpus" --partial "$partial" "${folding[@]}" --out "$exp/data"
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

if stage 10; then
    for m in $mix; do
        work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --out "$exp/tied/tri_$m"
        train mfcc "tri_$m" --init "$exp/tied/tri_$m" --mixtures "$m"
    done
fi

if stage 11; then
    for m in $mix; do
        transform_all "$m"
        work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --onto "$exp/lda/$m/train" --out "$exp/tied/lda_$m"
        train "lda/$m" "lda_$m" --init "$exp/tied/lda_$m" --mixtures "$m"
    done
fi

if stage 12; then
    for m in $mix; do
        adapt_all "$m"
        train "sat/$m" "sat_$m" --init "$exp/lda_$m" --mixtures "$m"
    done
fi

if stage 13; then
    for system in $(wanted_in 13); do
        for m in $mix; do
            read -r first also <<< "${start_of[$system]}"
            from=(--init "$exp/${first}_$m")
            if [ -n "$also" ]; then from+=(--also "$exp/${also}_$m"); fi
            work "${step_of[$system]}" "${from[@]}" --data "$exp/sat/$m/train" --dev "$exp/sat/$m/dev" --seed "$seed" \
                --overwrite "$overwrite" --out "$exp/${system}_$m"
        done
    done
fi

if stage 14; then
    for system in $criteria; do
        for m in $mix; do
            case $system in
                mono|tri) kind=mfcc ;;
                *) kind=${system%%-*}/$m ;;
            esac
            work decode --model "$exp/${system}_$m" --data "$exp/$kind/dev" "$exp/$kind/test" \
                --out "$exp/decode/${system}_$m"
            for set in dev test; do
                run score --hyp "$exp/decode/${system}_$m/$set" --data "$exp/mfcc/$set"
            done
        done
    done
fi

if stage 15; then report_results; fi
