# Stages 10 to 14 of recipes/spelling/run.sh: kernels of single letters, of the first two of --mix; those of the first
# rescore spelling.
read -r -a sizes <<< "$mix"
sizes=("${sizes[@]:0:2}")

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
        start=(--silence-states 0)
        for size in "${sizes[@]}"; do
            single=$exp/single/$group/ml_$size
            work train_ml --data "$exp/cut/$group/train" --dev "$exp/cut/$group/dev" --mixtures "$size" "${start[@]}" \
                --seed "$seed" --overwrite "$overwrite" --out "$single"
            start=(--init "$single")
            for space in ${spaces_of[$group]}; do
                work train_word_kernel --init "$single" --data "$exp/cut/$group/train" --space "$space" \
                    --out "$exp/kernel/$group/svm-${space}_$size"
            done
        done
    done
fi

if stage 12; then
    for group in $groups; do
        models=()
        for size in "${sizes[@]}"; do
            ml=true  # the models are the same whatever the score-space: scored once
            for space in ${spaces_of[$group]}; do
                models+=("$exp/kernel/$group/svm-${space}_$size")
                work test_word_kernel --model "${models[-1]}" --data "${folders[@]/#/"$exp/cut/$group/"}" --ml "$ml" \
                    --task "${title_of[$group]}" --seed "$seed" --out "$exp/score/$group/svm-${space}_$size"
                ml=false
            done
        done
        run show_margins --models "${models[@]}" --out "$exp/margins/$group" \
            --title "Kernels of ${title_of[$group]}: objective, margin, support vectors and steps (the paper prints none)"
        work compare_word_schemes --init "$exp/single/$group/ml_${sizes[0]}" --data "$exp/cut/$group/train" \
            --test "$exp/cut/$group/test" --space "${scheme_space[$group]}" --task "${title_of[$group]}" --seed "$seed" \
            --out "$exp/score/$group/schemes_${sizes[0]}"
    done
fi

if stage 13; then
    work rescore_words --model "$exp/ml_$m" --kernel "$exp/kernel/eset/svm-${spaces%% *}_${sizes[0]}" \
        --data "$exp/mfcc/test" --seed "$seed" --task "spelling, rescored" --out "$exp/score/rescored"
fi

if stage 14; then report_results; fi
