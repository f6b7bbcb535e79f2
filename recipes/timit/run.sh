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
#   --classifiers true: stages 10 to 13, of frames and segments; false leaves them out
#   --criteria "mono tri lda sat": the same phones, and the rungs above them, stages 20 to 25 (see recipes/an4)
source "$(dirname "$0")/../../steps/speech.sh"
source "$root/steps/ladder.sh"
stages=([10]="tables of frames and segments" [11]="broad phones, [PW10]" [12]="phone segments, [R18]" [13]="report of all"
    [20]="phones in context" [21]="LDA and MLLT" [22]="speaker-adaptive training" [23]="MCE, MMI and LME on top" [24]="errors of the rungs"
    [25]="report of the rungs")
offers="hmm mono tri lda sat sat-mce sat-mmi sat-lme-sdp"
mix="1 2 4 8" criteria="ml mce mmi lme-sdp"  # the whole of TIMIT bears 32 mixtures
start=flat test=core components=4 frames=60000 principal=0 peers="" draws=5 classifiers=true
options+=(start test components frames principal peers draws classifiers)
parse_options "$@"
[[ $classifiers =~ ^(true|false)$ ]] || usage_error "--classifiers is '$classifiers', expected true or false"
[ "$classifiers" = true ] || (( 10#$stage < 10 || 10#$stop_stage > 13 )) || usage_error "nothing to do: --classifiers false leaves out stages 10 to 13"
for system in tri lda sat sat-mce sat-mmi sat-lme-sdp; do (( stage_of[$system] += 10 )); done  # behind the classifiers
labels=$exp/data/train/phones.ctm
first_options=(--start "$start")
if [ "$start" = labels ]; then first_options+=(--labels "$labels"); fi
classes=(--map "$root/conf/timit_classes.toml" --map-table manner)
score_options=(--map "$root/conf/timit_phones.toml" --map-table to39)

make_data() {
    corpus_or_embedded
    run timit_data --corpus "$corpus" --partial "$partial" --test "$test" --out "$exp/data"
}

source "$root/recipes/timit/boundaries.sh"
speech_stages
if [ "$classifiers" = true ]; then source "$root/recipes/timit/classifiers.sh"; fi
climb 20
