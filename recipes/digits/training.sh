# Training in the digits recipe, sourced by its run.sh; uses: exp confs criteria epochs seed overwrite.
#
# Settings are searched on what is held out of the training samples (four folds where dev is small, dev where it is not),
# then the system is trained on all of them; the test samples choose nothing. The ranges hold the best of a wider search
# over folds of USPS's training samples: ridge 0.003 to 1, C 0.3 to 30, s 0.05 to 1, balance 0 to 1, margin 5 to 200, rate
# 0.0006 to 0.04.

train() { run "$1" "${confs[@]}" --seed "$seed" "${@:2}"; }
search() { train tune --folds 4 "$@"; }

data_of() {  # projected on principal components; for the hybrid systems whitened too
    case $1 in hybrid-*) echo "$exp/data/white" ;; *) echo "$exp/data/pca" ;; esac
}

fit_ml() {  # fit_ml <system> <mixtures>
    search --trainer "${step_of[$1]}" --data "$(data_of "$1")" --fixed covariance=full mixtures="$2" \
        --space ridge=0.01,0.03,0.1,0.3 --out "$exp/tune/$1_$2"
    train "${step_of[$1]}" --data "$(data_of "$1")" --conf "$exp/tune/$1_$2/best.toml" --with-dev --out "$exp/$1_$2"
}

fit_margin() {  # fit_margin <mixtures>: both methods with the settings that SMO likes best
    local system
    search --trainer train_margin --data "$exp/data/pca" --init "$exp/gmm-ml_$1" --fixed gap=0.03 \
        --space cost=2,4 scale=0.1,0.25 --out "$exp/tune/mm_$1"
    for system in $(wanted_in 11); do
        train "${step_of[$system]}" ${options_of[$system]} --conf "$exp/tune/mm_$1/best.toml" --gap 0.008 --with-dev \
            --data "$exp/data/pca" --init "$exp/gmm-ml_$1" --out "$exp/${system}_$1"
    done
}

fit_hybrid() {  # fit_hybrid <system> <mixtures>
    local -a space=(rate=0.002,0.006,0.02) objective=(${options_of[$1]})
    case $1 in *-lm) space+=(margin=60,120) ;; esac
    search --trainer "${step_of[$1]}" --data "$exp/data/white" --init "$exp/hybrid-ll_$2" \
        --fixed objective="${objective[1]}" epochs="$epochs" --space "${space[@]}" --out "$exp/tune/$1_$2"
    retrain_hybrid "$1" "$2" --out "$exp/$1_$2"
}

retrain_hybrid() {  # retrain_hybrid <system> <mixtures> <option ...>: with the settings found for it
    train "${step_of[$1]}" --data "$exp/data/white" --init "$exp/hybrid-ll_$2" --conf "$exp/tune/$1_$2/best.toml" \
        --with-dev --overwrite "$overwrite" "${@:3}"
}
