# Stages 10 to 14 of recipes/spelling/run.sh: kernels of single letters, which rescore spelling.
if stage 10; then
    for group in $groups; do
        for set in "${folders[@]}"; do
            work cut_words --model "$exp/ml_$m" --data "$exp/mfcc/$set" ${words_of[$group]:+--words ${words_of[$group]}} \
                --out "$exp/cut/$group/$set"
        done
    done
fi

if stage 11; then
    for group in $groups; do
        work train_ml --data "$exp/cut/$group/train" --dev "$exp/cut/$group/dev" --silence-states 0 --seed "$seed" \
            --overwrite "$overwrite" --out "$exp/single/$group/ml_1"
        work train_word_kernel --init "$exp/single/$group/ml_1" --data "$exp/cut/$group/train" \
            --out "$exp/kernel/$group/svm-llr-mean_1"
    done
fi

if stage 12; then
    for group in $groups; do
        work test_word_kernel --model "$exp/kernel/$group/svm-llr-mean_1" --data "${folders[@]/#/"$exp/cut/$group/"}" \
            --ml true --task "${title_of[$group]}" --seed "$seed" --out "$exp/score/$group"
    done
fi

if stage 13; then
    work rescore_words --model "$exp/ml_$m" --kernel "$exp/kernel/eset/svm-llr-mean_1" --data "$exp/mfcc/test" \
        --seed "$seed" --task "spelling, rescored" --out "$exp/score/rescored"
fi

if stage 14; then report_results; fi
