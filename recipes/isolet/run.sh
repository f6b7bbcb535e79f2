#!/usr/bin/env bash
# Isolated letters: the E-set of ISOLET (B C D E G P T V Z), nine whole-word models, after [LJ07] section V-A.
#
# Usage: recipes/isolet/run.sh [--option value ...]
#   --corpus DIR     ISOLET as distributed (isolet1 ... isolet5); without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus
#   --letters all    all 26 letters instead of the E-set (eset)
#   --protocol paper [LJ07]'s: train on the first productions of parts 1 to 4, test on part 5, no dev set: training data
#                    choose what dev would; default: parts 1 to 3 are train, 4 is dev, 5 is test
#   --radii "..."    values of r^2 / K that stage 9 holds LME's ball at ("0.004 0.02 0.1 0.5"); "" leaves it out
#   --spaces "..."   score-spaces of stage 10's kernels, for the first two of --mix ("llr-mean llr-var llr-mean-var")
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="generative kernels on the ML models, after [L04]" [11]="their score, and other ways from pairs to words" [12]="report of all")
protocols="default paper"
letters=eset
spaces="llr-mean llr-var llr-mean-var"
options+=(letters spaces)
with_sweep "0.004 0.02 0.1 0.5"
parse_options "$@"
declare -A kept=([eset]=BCDEGPTVZ [all]=ABCDEFGHIJKLMNOPQRSTUVWXYZ)
[ -n "${kept[$letters]-}" ] || usage_error "--letters is '$letters', expected eset or all"
if [ "$letters" = all ]; then figures=""; fi  # the paper's are of the E-set

make_data() {
    corpus_or_embedded --letters "$letters"
    run isolet_data --corpus "$corpus" --partial "$partial" --protocol "$protocol" --letters "${kept[$letters]}" --out "$exp/data"
}

speech_stages
source "$root/recipes/isolet/kernels.sh"
