#!/usr/bin/env bash
# Spelled letters of AN4: kernels of single letters cut out by alignment, which rescore spelling, after [L04] section 7.
#
# Usage: recipes/spelling/run.sh --corpus DIR [--option value ...]
#   --corpus DIR     AN4 as distributed (etc and wav); of it the utterances of letters alone
#   --train DIR      instead: data folders of your own connected words, with --dev DIR and --test DIR
#   --letters "..."  words that confuse each other ("B C D E G P T V Z"): their kernels rescore the strings
#   --all false      leave out the kernels of all letters
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="letters cut out by alignment" [11]="models and kernels of single letters" [12]="their scores"
    [13]="kernels rescore spelling" [14]="report of all")
mix="1 2"
criteria="ml"
train="" dev="" test="" letters="B C D E G P T V Z" all=true
options+=(train dev test letters all)
parse_options "$@"
m=${mix##* }  # of the model that aligns and recognises
groups="eset"
if [ "$all" = true ]; then groups="eset all"; fi
declare -A words_of=([eset]=$letters [all]="") title_of=([eset]="confusable letters" [all]="all letters")

make_data() {
    if [ -n "$train" ]; then
        run words_data --train "$train" --dev "$dev" --test "$test" --out "$exp/data"
    else
        [ -n "$corpus" ] || usage_error "needs --corpus, AN4 as distributed, or --train, --dev and --test, data folders"
        run spelling_data --corpus "$corpus" --out "$exp/data"
    fi
}

speech_stages

if stage 10; then
    for group in $groups; do
        for set in "${folders[@]}"; do
            work cut_words --model "$exp/ml_$m" --data "$exp/mfcc/$set" ${words_of[$group]:+--words ${words_of[$group]}} \
                --out "$exp/cut/$group/$set"
        done
    done
fi

if stage 11; then
    for group in $groups; do
        work train_ml --data "$exp/cut/$group/train" --dev "$exp/cut/$group/dev" --silence-states 0 --seed "$seed" \
            --overwrite "$overwrite" --out "$exp/single/$group/ml_1"
        work train_word_kernel --init "$exp/single/$group/ml_1" --data "$exp/cut/$group/train" \
            --out "$exp/kernel/$group/svm-llr-mean_1"
    done
fi

if stage 12; then
    for group in $groups; do
        work test_word_kernel --model "$exp/kernel/$group/svm-llr-mean_1" --data "${folders[@]/#/"$exp/cut/$group/"}" \
            --ml true --task "${title_of[$group]}" --seed "$seed" --out "$exp/score/$group"
    done
fi

if stage 13; then
    work rescore_words --model "$exp/ml_$m" --kernel "$exp/kernel/eset/svm-llr-mean_1" --data "$exp/mfcc/test" \
        --seed "$seed" --task "spelling, rescored" --out "$exp/score/rescored"
fi

if stage 14; then report_results; fi
