# Every speaker left out in turn, sourced by run.sh: a run of its own for each up to the scores, then all pooled.

[ -f "$train/utt2spk" ] || usage_error "--leave-out each: no file $train/utt2spk"
speakers=() runs=()
while read -r speaker; do
    [ "$speaker" != each ] || usage_error "--leave-out each: a speaker of $train is called each; leave them out one by one"
    speakers+=("$speaker")
    folder=${speaker//%/%25} folder=${folder//\//%2F}  # a name from data leads nowhere else, and is not "all"
    case $folder in .*|all) printf -v folder '%%%02X%s' "'$folder" "${folder:1}" ;; esac
    runs+=("$exp/$folder")
done < <(while read -r _ speaker; do echo "$speaker"; done < "$train/utt2spk" | sort -u)

if (( stage <= 7 )); then
    for n in "${!speakers[@]}"; do
        MARGO_TRIAL=true start_job bash "$0" "$@" --leave-out "${speakers[n]}" --exp "${runs[n]}" \
            --stop-stage $(( stop_stage < 7 ? stop_stage : 7 ))
        await "$!" || exit
    done
fi

if stage 8; then report_pooled "${runs[@]}"; fi
exit 0
