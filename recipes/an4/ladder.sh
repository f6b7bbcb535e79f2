# Stages 10 to 13 of recipes/an4/run.sh: the rungs above phones.
transform_all() {  # LDA and MLLT of m Gaussians: mfcc/<set> -> lda/<m>/<set>
    local set
    work train_lda --init "$exp/mono_$1" --data "$exp/mfcc/train" --out "$exp/lda/transform_$1"
    for set in $sets; do
        run transform_features --transform "$exp/lda/transform_$1" --data "$exp/mfcc/$set" --out "$exp/lda/$1/$set"
    done
}

adapt_all() {  # fMLLR to lda_<m>: lda/<m>/<set> -> sat/<m>/<set>; dev and test by what a first pass recognises
    local set
    work adapt_features --model "$exp/lda_$1" --data "$exp/lda/$1/train" --out "$exp/sat/$1/train"
    work decode --model "$exp/lda_$1" --data "$exp/lda/$1/dev" "$exp/lda/$1/test" --out "$exp/first/lda_$1"
    for set in dev test; do
        work adapt_features --model "$exp/lda_$1" --data "$exp/lda/$1/$set" --hyp "$exp/first/lda_$1/$set" \
            --out "$exp/sat/$1/$set"
    done
}

if stage 10; then
    for m in $mix; do
        work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --out "$exp/tied/tri_$m"
        train mfcc "tri_$m" --init "$exp/tied/tri_$m" --mixtures "$m"
    done
fi

if stage 11; then
    for m in $mix; do
        transform_all "$m"
        work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --onto "$exp/lda/$m/train" --out "$exp/tied/lda_$m"
        train "lda/$m" "lda_$m" --init "$exp/tied/lda_$m" --mixtures "$m"
    done
fi

if stage 12; then
    for m in $mix; do
        adapt_all "$m"
        train "sat/$m" "sat_$m" --init "$exp/lda_$m" --mixtures "$m"
    done
fi

if stage 13; then
    for system in $(wanted_in 13); do
        for m in $mix; do
            read -r first also <<< "${start_of[$system]}"
            from=(--init "$exp/${first}_$m")
            if [ -n "$also" ]; then from+=(--also "$exp/${also}_$m"); fi
            work "${step_of[$system]}" "${from[@]}" --data "$exp/sat/$m/train" --dev "$exp/sat/$m/dev" --seed "$seed" \
                --overwrite "$overwrite" --out "$exp/${system}_$m"
        done
    done
fi
