# Stages 10 to 12 of recipes/isolet: generative kernels on the ML models of the first two of --mix, after [L04].
declare -A scheme_space=([eset]=ll-mean [all]=ll)  # derivatives of 26 words are too many for machines of all samples
read -r -a sizes <<< "$mix"
sizes=("${sizes[@]:0:2}")  # of the kernels

if stage 10; then
    for m in "${sizes[@]}"; do
        for space in $spaces; do
            work train_word_kernel --init "$exp/ml_$m" --data "$exp/mfcc/train" --space "$space" --out "$exp/kernel/svm-${space}_$m"
        done
    done
fi

if stage 11; then
    models=() tests=("${folders[@]:1}")
    for m in "${sizes[@]}"; do
        for space in $spaces; do
            models+=("$exp/kernel/svm-${space}_$m")
            work test_word_kernel --model "${models[-1]}" --data "${tests[@]/#/"$exp/mfcc/"}" --seed "$seed" --out "$exp/score/svm-${space}_$m"
        done
    done
    run show_margins --models "${models[@]}" --out "$exp/margins" \
        --title "Kernels of words: objective, margin, support vectors and steps (the paper prints none)"
    work compare_word_schemes --init "$exp/ml_${sizes[0]}" --data "$exp/mfcc/train" --test "$exp/mfcc/test" --seed "$seed" \
        --space "${scheme_space[$letters]}" --out "$exp/score/schemes_${sizes[0]}"
fi

if stage 12; then report_results; fi
