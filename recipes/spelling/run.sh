#!/usr/bin/env bash
# Spelled letters of AN4: kernels of single letters cut out by alignment, which rescore spelling, after [L04] section 7.
#
# Usage: recipes/spelling/run.sh --corpus DIR [--option value ...]
#   --corpus DIR     AN4 as distributed (etc and wav); of it the utterances of letters alone
#   --train DIR      instead: data folders of your own connected words, with --dev DIR and --test DIR
#   --letters "..."  words that confuse each other ("B C D E G P T V Z"): their kernels rescore the strings
#   --all false      leave out the kernels of all letters
#   --spaces "..."   score-spaces of the confusable letters' kernels ("llr-mean llr-var llr-mean-var"); the first is that
#                    of all letters' too, and rescores
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="letters cut out by alignment" [11]="models and kernels of single letters" [12]="their scores"
    [13]="kernels rescore spelling" [14]="report of all")
mix="1 2"
criteria="ml"
train="" dev="" test="" letters="B C D E G P T V Z" all=true
spaces="llr-mean llr-var llr-mean-var"
options+=(train dev test letters all spaces)
parse_options "$@"
m=${mix##* }  # of the model that aligns and recognises
groups="eset"
if [ "$all" = true ]; then groups="eset all"; fi
declare -A words_of=([eset]=$letters [all]="") title_of=([eset]="confusable letters" [all]="all letters")
declare -A spaces_of=([eset]=$spaces [all]=${spaces%% *})
declare -A scheme_space=([eset]=ll-mean [all]=ll)  # derivatives of 26 words are too many for machines of all samples

make_data() {
    if [ -n "$train" ]; then
        run words_data --train "$train" --dev "$dev" --test "$test" --out "$exp/data"
    else
        [ -n "$corpus" ] || usage_error "needs --corpus, AN4 as distributed, or --train, --dev and --test, data folders"
        run spelling_data --corpus "$corpus" --out "$exp/data"
    fi
}

speech_stages
source "$root/recipes/spelling/kernels.sh"
