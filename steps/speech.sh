# Sourced by the run.sh of speech recipes: the stages they share, from data folders to the report.
#
# A recipe defines make_data, which writes the data folders EXP/data/<folder>, calls parse_options "$@" and then
# speech_stages. It may set what is below, and define after_stage_N for what it does in stage N beyond what all do.
source "$(dirname "${BASH_SOURCE[0]}")/recipe.sh"

mix="1 2 4"
criteria="ml mce mmi mm lme-gd lme-sdp"
offers="hmm"
options+=(mix criteria)
folders=(train dev test)          # of data; without dev, training data choose what dev would
sets=""                           # of them, to decode and score (all)
searches="align:ali nbest:nbest"  # of the training data in stage 3: step and folder
first_options=()                  # of the trainer that begins without a model
score_options=()
radii=""                          # of stage 9, where a recipe has it (with_sweep); none: it is left out

speech_stages() {
    local n
    by_dev=(--dev "$exp/mfcc/dev")
    if [ "$protocol" = paper ]; then folders=(train test) by_dev=(); fi
    [[ $radii =~ ^[0-9e.\ -]*$ ]] || usage_error "--radii is '$radii', expected numbers, r^2 / K of the ball"
    for n in "${!stages[@]}"; do
        if (( n == 9 )); then sweep_radii; fi
        if (( n > 8 )) || ! stage "$n"; then continue; fi
        case $n in
            0) make_data ;;
            1) make_features ;;
            3) search_train ;;
            7) decode_and_score ;;
            8) report_results ;;
            *) train_systems "$n" ;;
        esac
        if declare -F "after_stage_$n" > /dev/null; then "after_stage_$n"; fi
    done
}

make_features() {  # data/<set> -> mfcc/<set>
    local set
    local -a pipes=()
    if [ "$allow_pipes" = true ]; then pipes=(--allow-pipes true); fi
    for set in "${folders[@]}"; do
        run make_mfcc --conf "$root/conf/mfcc.toml" "${confs[@]}" --data "$exp/data/$set" --out "$exp/mfcc/$set" \
            "${pipes[@]}" --nj "$nj" --cluster "$cluster"
    done
}

train_systems() {  # the wanted systems of a stage: <system>_<m> for every m of --mix
    local system start also other m before
    local -a from
    for system in $(wanted_in "$1"); do
        read -r start also <<< "${start_of[$system]}"
        before=""
        for m in $mix; do
            from=(--init "$exp/${start}_$m")
            if [ -n "$also" ]; then from+=(--also); fi
            for other in $also; do from+=("$exp/${other}_$m"); done
            if [[ ${reads_of[$system]} == *nbest* ]]; then from+=(--nbest "$exp/nbest/${start}_$m"); fi
            if [ "$start" = "$system" ]; then from=(--mixtures "$m" ${before:+--init "$before"}); fi
            if [ "$start$before" = "$system" ]; then from+=("${first_options[@]}"); fi
            before=$exp/${system}_$m
            work "${step_of[$system]}" "${from[@]}" ${options_of[$system]} --data "$exp/mfcc/train" "${by_dev[@]}" \
                --seed "$seed" --overwrite "$overwrite" --out "$before"
        done
    done
}

searches_read() {  # those of the searches that a wanted system's trainer reads
    local system search
    for search in $searches; do
        for system in $criteria; do
            if [[ ${reads_of[$system]} == *${search#*:}* ]]; then echo "$search"; break; fi
        done
    done
}

search_train() {  # models of stage 2 on train -> ali/<system>_<m>, nbest/<system>_<m>
    local system m search first
    first=$(wanted_in 2)
    for system in ${first:-ml}; do
        for m in $mix; do
            for search in $searches; do
                beside alone "${search%:*}" --model "$exp/${system}_$m" --data "$exp/mfcc/train" \
                    --out "$exp/${search#*:}/${system}_$m"
            done
        done
    done
    all_done
}

trained_before() {  # systems on offer that are trained in stages before this one
    local name
    for name in "${offered[@]}"; do if (( stage_of[$name] < $1 )); then echo "$name"; fi; done
}

decode_and_score() {  # <system>_<m> -> decode/<system>_<m>/<set>/{hyp,score}
    local system m
    for system in $(only $(trained_before 7)); do
        for m in $mix; do beside decode_and_score_one "${system}_$m"; done
    done
    all_done
}

decode_and_score_one() {
    local model=$1 set
    local -a data=()
    local sets=${sets:-${folders[*]}}
    for set in $sets; do data+=("$exp/mfcc/$set"); done
    alone decode --model "$exp/$model" --data "${data[@]}" --out "$exp/decode/$model"
    for set in $sets; do
        run score --hyp "$exp/decode/$model/$set" --data "$exp/mfcc/$set" "${score_options[@]}"
    done
}

with_sweep() {  # before parse_options: the recipe has stage 9, and --radii with this default
    stages[9]="radius of LME's ball ([LJ07] Figures 1 and 2, Table II), and the report anew"
    options+=(radii)
    radii=$1
}

sweep_radii() {  # stage 9: mce_<m> and --radii -> sweep/mce_<m>
    local m
    if [ -z "$radii" ]; then
        (( 10#$stage != 9 || 10#$stop_stage != 9 )) || usage_error "stage 9 needs --radii, values of r^2 / K of LME's ball"
        return 0
    fi
    stage 9 mce || return 0
    for m in $mix; do
        work sweep_radius --init "$exp/mce_$m" --radii $radii --data "$exp/mfcc/train" "${by_dev[@]}" \
            --test "$exp/mfcc/test" --out "$exp/sweep/mce_$m"
    done
    report_results
}
