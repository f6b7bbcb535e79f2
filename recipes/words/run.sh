#!/usr/bin/env bash
# Your own words: a whole-word model for every word of your Kaldi data folders, isolated or connected.
#
# Usage: recipes/words/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 1 features, 2 maximum likelihood,
#                               3 alignment and N-best, 4 MCE, 5 MMI and MM, 6 LME, 7 decode and score, 8 report
#   --train DIR      Kaldi data folder to train on (wav.scp text utt2spk; feats.scp is taken where present)
#   --test DIR       data folder to test on
#   --leave-out NAME instead of --test: test on this speaker of --train, train on the others; with "each", on every
#                    speaker in turn, in EXP/<speaker>, all of them scored together in EXP/all
#   --dev DIR        data folder to tune on; without it, a part of --train is set aside
#   --states N       emitting states of a word (12)
#   --exp DIR        where everything is written (exp/words)
#   --mix "1 2 4"    Gaussians per state
#   --criteria "ml mce mmi mm lme-gd lme-sdp lme-sdp-hard"   systems to train, score and report
#   --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results
#   --seed N         seed of everything random (0)
#   --overwrite true replace models that were trained with other settings
source "$(dirname "$0")/../../steps/recipe.sh"
speech_defaults
train=""
dev=""
test=""
leave_out=""
states=12
options+=(train dev test leave_out states)
parse_options "$@"

if [ "$leave_out" = each ]; then
    [ -f "$train/utt2spk" ] || usage_error "--leave-out each: no file $train/utt2spk"
    speakers=$(cut -d' ' -f2 "$train/utt2spk" | sort -u)
    runs=()
    for speaker in $speakers; do runs+=("$exp/$speaker"); done
    if (( stage <= 7 )); then
        for speaker in $speakers; do
            "$0" "$@" --leave-out "$speaker" --exp "$exp/$speaker" --stop-stage $(( stop_stage < 7 ? stop_stage : 7 )) \
                || exit
        done
    fi
    if stage 8; then
        run pool --exp "${runs[@]}" --out "$exp/all"
        exp=$exp/all
        for model in "$exp"/decode/*/; do run score --hyp "${model}test" --data "$exp/data/test" --by speaker; done
        report_results
    fi
    exit 0
fi

if [ -n "$leave_out" ]; then sets=test; fi  # one of several trials, of which the pooled test counts

if stage 0; then
    run words_data --train "$train" --test "$test" --leave-out "$leave_out" --dev "$dev" --out "$exp/data"
fi

if stage 1; then
    make_features
fi

if stage 2 ml; then
    train_system ml --states "$states"
fi

if stage 3; then
    [ -n "$leave_out" ] || align_and_list
fi

if stage 4 mce; then
    train_system mce
fi

if stage 5 mmi mm; then
    for system in $(only mmi mm); do train_system "$system"; done
fi

if stage 6 lme-gd lme-sdp lme-sdp-hard; then
    for system in $(only lme-gd lme-sdp lme-sdp-hard); do train_system "$system"; done
fi

if stage 7; then
    decode_and_score
fi

if stage 8; then
    report_results
fi
