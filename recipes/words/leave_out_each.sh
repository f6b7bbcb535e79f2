# Every speaker left out in turn, sourced by run.sh: a run of its own for each up to the scores, then all pooled.

[ -f "$train/utt2spk" ] || usage_error "--leave-out each: no file $train/utt2spk"
speakers=$(cut -d' ' -f2 "$train/utt2spk" | sort -u)
runs=()
for speaker in $speakers; do runs+=("$exp/$speaker"); done

if (( stage <= 7 )); then
    for speaker in $speakers; do
        start_job bash "$0" "$@" --leave-out "$speaker" --exp "$exp/$speaker" --stop-stage $(( stop_stage < 7 ? stop_stage : 7 ))
        await "$!" || exit
    done
fi

if stage 8; then
    run pool --exp "${runs[@]}" --out "$exp/all"
    exp=$exp/all
    for model in "$exp"/decode/*/; do run score --hyp "${model}test" --data "$exp/data/test" --by speaker; done
    report_results
fi
exit 0
