# Every fold of --folds in turn, sourced by run.sh: a run of its own for each up to the scores, then all pooled.
runs=() figures=""  # others tested the official set
for (( n = 1; n <= folds; n++ )); do
    runs+=("$exp/$n")
    (( 10#$stage <= 14 )) || continue
    start_job bash "$0" "$@" --fold "$n" --exp "$exp/$n" --stop-stage $(( 10#$stop_stage < 14 ? 10#$stop_stage : 14 ))
    await "$!" || exit
done
if stage 15; then report_pooled "${runs[@]}"; fi
exit 0
