#!/usr/bin/env bash
# Phone recognition on TIMIT: 48 phones of three states under a bigram, scored as 39, after Lee and Hon (1989).
#
# Usage: recipes/timit/run.sh [--option value ...]
#   --stage N, --stop-stage M   first and last stage to run (all by default): 0 data, 1 features, 2 maximum likelihood,
#                               3 alignment and N-best, 4 MCE, 5 MMI and MM, 6 LME, 7 decode and score, 8 report;
#                               classifiers: 10 tables, 11 broad phones [PW10], 12 phone segments [R18], 13 report of all
#   --corpus DIR     TIMIT as on the LDC disc, or a sample of it; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus; folders without TRAIN and TEST are split by a fixed rule
#   --exp DIR        where everything is written (exp/timit)
#   --start flat     where training starts: flat, or labels (segments of the .phn files)
#   --mix "1 2 4 8"  Gaussians per state (the whole of TIMIT bears 32)
#   --criteria "ml mce mmi mm lme-gd lme-sdp lme-sdp-hard"   systems to train, score and report (ml mce mmi lme-sdp)
#   --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results
#   --seed N         seed of everything random (0)
#   --overwrite true replace models that were trained with other settings
source "$(dirname "$0")/../../steps/recipe.sh"
speech_defaults
mix="1 2 4 8"
criteria="ml mce mmi lme-sdp"
start=flat
options+=(start)
parse_options "$@"
source "$root/recipes/timit/classifiers.sh"

if stage 0; then
    corpus_or_embedded
    run timit_data --corpus "$corpus" --partial "$partial" --out "$exp/data"
fi

if stage 1; then
    make_features
fi

if stage 2 ml; then
    train_system ml --start "$start" --labels "$exp/data/train/phones.ctm"
fi

if stage 3; then
    align_and_list
    for m in $mix; do
        run score_alignment --ali "$exp/ali/ml_$m" --data "$exp/mfcc/train" --labels "$exp/data/train/phones.ctm" \
            --out "$exp/boundaries/ml_$m"
    done
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
    decode_and_score --map "$root/conf/timit_phones.toml" --map-table to39
    for system in $criteria; do
        run plot_confusions --hyp "$exp/decode/${system}_${mix##* }/test" --out "$exp/confusions/$system"
    done
fi

if stage 8; then
    report_results
fi

if stage 10; then
    make_classifier_tables
fi

if stage 11; then
    classify_broad_phones
fi

if stage 12; then
    classify_segments
fi

if stage 13; then
    report_results
fi
