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
        for space in ${spaces_of[$group]}; do
            work train_word_kernel --init "$exp/single/$group/ml_1" --data "$exp/cut/$group/train" --space "$space" \
                --out "$exp/kernel/$group/svm-${space}_1"
        done
    done
fi

if stage 12; then
    for group in $groups; do
        models=() ml=true  # the models are the same whatever the score-space: scored once
        for space in ${spaces_of[$group]}; do
            models+=("$exp/kernel/$group/svm-${space}_1")
            work test_word_kernel --model "${models[-1]}" --data "${folders[@]/#/"$exp/cut/$group/"}" --ml "$ml" \
                --task "${title_of[$group]}" --seed "$seed" --out "$exp/score/$group/svm-${space}_1"
            ml=false
        done
        run show_margins --models "${models[@]}" --out "$exp/margins/$group" \
            --title "Kernels of ${title_of[$group]}: objective, margin, support vectors and steps (the paper prints none)"
        work compare_word_schemes --init "$exp/single/$group/ml_1" --data "$exp/cut/$group/train" \
            --test "$exp/cut/$group/test" --space "${scheme_space[$group]}" --task "${title_of[$group]}" --seed "$seed" \
            --out "$exp/score/$group/schemes_1"
    done
fi

if stage 13; then
    work rescore_words --model "$exp/ml_$m" --kernel "$exp/kernel/eset/svm-${spaces%% *}_1" --data "$exp/mfcc/test" \
        --seed "$seed" --task "spelling, rescored" --out "$exp/score/rescored"
fi

if stage 14; then report_results; fi
