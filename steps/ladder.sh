# Sourced by the run.sh of recipes with phones: the rungs above them, each a stage from $rung on, then scores and a report.
# The recipe has trained mono_<m> on the features mfcc/<set>; it may set score_options.
sets="train dev test"
score_options=()

train() {  # a model <system>_<m> on features of a kind, from options of its own; dev chooses its grammar's weights
    local kind=$1 out=$2
    work train_ml --data "$exp/$kind/train" --dev "$exp/$kind/dev" --seed "$seed" --overwrite "$overwrite" \
        --out "$exp/$out" "${@:3}"
}

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

train_on_top() {  # a criterion on top of sat: train_on_top <system> <m>
    local first also
    read -r first also <<< "${start_of[$1]}"
    local -a from=(--init "$exp/${first}_$2")
    if [ -n "$also" ]; then from+=(--also "$exp/${also}_$2"); fi
    work "${step_of[$1]}" "${from[@]}" --data "$exp/sat/$2/train" --dev "$exp/sat/$2/dev" --seed "$seed" \
        --overwrite "$overwrite" --out "$exp/${1}_$2"
}

decode_rung() {  # on dev and test, and the scores: decode_rung <system> <m>
    local kind=${1%%-*}/$2 set
    case $1 in mono|tri) kind=mfcc ;; esac
    work decode --model "$exp/${1}_$2" --data "$exp/$kind/dev" "$exp/$kind/test" --out "$exp/decode/${1}_$2"
    for set in dev test; do
        run score --hyp "$exp/decode/${1}_$2/$set" --data "$exp/mfcc/$set" "${score_options[@]}"
    done
}

climb() {  # climb <first stage>: all of them
    local rung=$1 m system
    if stage $(( rung )); then
        for m in $mix; do
            work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --out "$exp/tied/tri_$m"
            train mfcc "tri_$m" --init "$exp/tied/tri_$m" --mixtures "$m"
        done
    fi
    if stage $(( rung + 1 )); then
        for m in $mix; do
            transform_all "$m"
            work tie_triphones --init "$exp/mono_$m" --data "$exp/mfcc/train" --onto "$exp/lda/$m/train" \
                --out "$exp/tied/lda_$m"
            train "lda/$m" "lda_$m" --init "$exp/tied/lda_$m" --mixtures "$m"
        done
    fi
    if stage $(( rung + 2 )); then
        for m in $mix; do
            adapt_all "$m"
            train "sat/$m" "sat_$m" --init "$exp/lda_$m" --mixtures "$m"
        done
    fi
    if stage $(( rung + 3 )); then
        for system in $(wanted_in $(( rung + 3 ))); do
            for m in $mix; do train_on_top "$system" "$m"; done
        done
    fi
    if stage $(( rung + 4 )); then
        for system in $(only "${offered[@]}"); do
            (( stage_of[$system] >= rung )) || [ "$system" = mono ] || continue
            for m in $mix; do decode_rung "$system" "$m"; done
        done
    fi
    if stage $(( rung + 5 )); then report_results; fi
}
