# Boundaries worth trusting, sourced by run.sh in stage 3: a model of finer frames, trained on the labelled segments of
# the training speakers, places the phones of the test speakers, corrected by what is systematic on the former.
fine=("${confs[@]}" --conf "$root/conf/timit_fine.toml")
for set in train test; do
    run make_mfcc --conf "$root/conf/mfcc.toml" "${fine[@]}" --data "$exp/data/$set" --out "$exp/fine/$set" \
        --nj "$nj" --cluster "$cluster"
done
run train_ml "${fine[@]}" --data "$exp/fine/train" --start labels --labels "$labels" --seed "$seed" \
    --overwrite "$overwrite" --nj "$nj" --cluster "$cluster" --out "$exp/aligner"
work train_correction --model "$exp/aligner" --data "$exp/fine/train" --labels "$labels" "${classes[@]}" \
    --out "$exp/correction"
work align --model "$exp/aligner" --data "$exp/fine/test" --correction "$exp/correction" --out "$exp/placed/test"
run score_alignment --ali "$exp/placed/test" --data "$exp/fine/test" --labels "$exp/data/test/phones.ctm" \
    "${classes[@]}" --out "$exp/boundaries/held-out"
