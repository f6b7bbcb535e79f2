# Sourced by run.sh: what TIMIT does with hand labels in stage 3, and with confusions in stage 7.
after_stage_3() {  # of the models of stage 2 on the training speakers; then those of an aligner
    for system in $(wanted_in 2); do
        for m in $mix; do
            run score_alignment --ali "$exp/ali/${system}_$m" --data "$exp/mfcc/train" --labels "$labels" "${classes[@]}" \
                --out "$exp/boundaries/${system}_$m"
        done
    done
    place_phones
}

after_stage_7() {
    for system in $(only $(trained_before 7)); do
        run plot_confusions --hyp "$exp/decode/${system}_${mix##* }/test" --out "$exp/confusions/$system"
    done
}

place_phones() {  # boundaries worth trusting: a model of finer frames, trained on the labelled segments of the training
    # speakers, places the phones of the test speakers, corrected by what is systematic on the former
    local set
    local -a fine=("${confs[@]}" --conf "$root/conf/timit_fine.toml")
    for set in train test; do
        run make_mfcc --conf "$root/conf/mfcc.toml" "${fine[@]}" --data "$exp/data/$set" --out "$exp/fine/$set" \
            --nj "$nj" --cluster "$cluster"
    done
    run train_ml "${fine[@]}" --anneal 0 --data "$exp/fine/train" --start labels --labels "$labels" --seed "$seed" \
        --overwrite "$overwrite" --nj "$nj" --cluster "$cluster" --out "$exp/aligner"
    work train_correction --model "$exp/aligner" --data "$exp/fine/train" --labels "$labels" "${classes[@]}" \
        --out "$exp/correction"
    work align --model "$exp/aligner" --data "$exp/fine/test" --correction "$exp/correction" --out "$exp/placed/test"
    run score_alignment --ali "$exp/placed/test" --data "$exp/fine/test" --labels "$exp/data/test/phones.ctm" \
        "${classes[@]}" --out "$exp/boundaries/held-out"
}
