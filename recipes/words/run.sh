#!/usr/bin/env bash
# Your own words: a whole-word model for every word of your Kaldi data folders, isolated or connected.
#
# Usage: recipes/words/run.sh [--option value ...]
#   --train DIR      Kaldi data folder to train on (wav.scp text utt2spk; feats.scp is taken where present)
#   --test DIR       data folder to test on
#   --leave-out NAME instead of --test: test on this speaker of --train, train on the others; with "each", on every
#                    speaker in turn, in EXP/<speaker>, all of them scored together in EXP/all
#   --dev DIR        data folder to tune on; without it, some speakers of --train are set aside
#   --states N       emitting states of a word (12)
#   --allow-overlap true: accept utterances that are in more than one of the folders
source "$(dirname "$0")/../../steps/speech.sh"
train="" dev="" test="" leave_out="" states=12 allow_overlap=false
options+=(train dev test leave_out states allow_overlap)
parse_options "$@"
first_options=(--states "$states")

make_data() {
    run words_data --train "$train" --test "$test" --leave-out "$leave_out" --dev "$dev" \
        --allow-overlap "$allow_overlap" --allow-pipes "$allow_pipes" --out "$exp/data"
}

if [ "$leave_out" = each ]; then
    source "$root/recipes/words/leave_out_each.sh"
elif [ -n "${MARGO_TRIAL-}" ]; then  # one of those, of which the pooled test counts
    sets=test
    searches=$(searches_read)
fi
speech_stages
