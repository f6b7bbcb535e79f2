#!/usr/bin/env bash
# Phone recognition on TIMIT: 48 phones of three states under a bigram, scored as 39, after Lee and Hon (1989).
#
# Usage: recipes/timit/run.sh [--option value ...]
#   --corpus DIR     TIMIT as on the LDC disc, or a sample of it; without it, the embedded synthetic corpus
#   --partial true   accept an incomplete corpus; folders without TRAIN and TEST are split by a fixed rule
#   --start flat     where training starts: flat, or labels (of the .phn files); --test core, or full: 168 speakers [PW10]
#   --components 4   Gaussians a class for broad phones ([PW10]: 100); --frames 60000: frames a set (0: all, as there)
#   --principal 0    features of a frame: all 39, or so many principal components ([PW10] has 20 of another kind)
#   --peers ""       "mlp svm-rbf": references beside them; --draws 5: of missing features ([PW10]: 100)
source "$(dirname "$0")/../../steps/speech.sh"
stages=([10]="tables of frames and segments" [11]="broad phones, [PW10]" [12]="phone segments, [R18]" [13]="report of all")
mix="1 2 4 8" criteria="ml mce mmi lme-sdp"  # the whole of TIMIT bears 32 mixtures
start=flat test=core components=4 frames=60000 principal=0 peers="" draws=5
options+=(start test components frames principal peers draws)
parse_options "$@"
labels=$exp/data/train/phones.ctm
first_options=(--start "$start")
if [ "$start" = labels ]; then first_options+=(--labels "$labels"); fi
score_options=(--map "$root/conf/timit_phones.toml" --map-table to39)

make_data() {
    corpus_or_embedded
    run timit_data --corpus "$corpus" --partial "$partial" --test "$test" --out "$exp/data"
}

after_stage_3() {
    for m in $mix; do
        run score_alignment --ali "$exp/ali/ml_$m" --data "$exp/mfcc/train" --labels "$labels" --out "$exp/boundaries/ml_$m"
    done
}

after_stage_7() {
    for system in $criteria; do
        run plot_confusions --hyp "$exp/decode/${system}_${mix##* }/test" --out "$exp/confusions/$system"
    done
}

speech_stages
source "$root/recipes/timit/classifiers.sh"
