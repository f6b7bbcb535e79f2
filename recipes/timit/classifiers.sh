# The GMM classifiers of the TIMIT recipe, sourced by its run.sh; they use: root exp nj seed overwrite.

classify() { run "$@" --conf "$root/conf/timit_gmm.toml"; }
tables=$exp/tables

groups() {  # name:gender of those to classify; a gender that train, dev or test lacks is left out
    local who set
    echo ma+fe:
    for who in ma:m fe:f; do
        for set in train dev test; do
            grep -q " ${who#*:}$" "$exp/data/$set/spk2gender" || { echo "no ${who%:*} in $set: left out" >&2; continue 2; }
        done
        echo "$who"
    done
}

make_classifier_tables() {  # frames in 4 and 6 broad classes, of men, women and both; phone segments in 39 classes
    local who classes
    local -a from=(--mfcc "$exp/mfcc" --labels "$exp/data")
    for who in $(groups); do
        for classes in 4 6; do
            beside classify make_tables "${from[@]}" --map "$root/conf/timit_classes.toml" --map-table "broad$classes" \
                --gender "${who#*:}" --out "$tables/${who%:*}-$classes"
        done
    done
    beside classify make_tables --kind segments "${from[@]}" --map "$root/conf/timit_phones.toml" --map-table to39 \
        --out "$tables/phones"
    all_done
}

classify_broad_phones() {  # [PW10] Figures 3 and 4
    local who classes
    for who in $(groups); do
        for classes in 4 6; do beside classify_broad_phones_of "${who%:*}-$classes"; done
    done
    all_done
}

classify_broad_phones_of() {
    local task=$1 criterion
    local models=$exp/gmm/$task
    classify train_gmm --data "$tables/$task" --seed "$seed" --out "$models/gmm-ml"
    for criterion in cl mm; do
        classify train_ebw --criterion $criterion --data "$tables/$task" --init "$models/gmm-ml" \
            --overwrite "$overwrite" --out "$models/gmm-$criterion"
    done
    for criterion in ml cl mm; do
        run test_gmm --model "$models/gmm-$criterion" --data "$tables/$task" --system gmm-$criterion --task "$task" \
            --out "$models/test/gmm-$criterion"
    done
    run sweep_missing --model "$models"/gmm-{ml,cl,mm} --data "$tables/$task" --seed "$seed" --out "$models/missing"
}

classify_segments() {  # [R18] Table 1, row TIMIT
    local models=$exp/gmm/phones objective
    classify train_gmm --covariance full --ridge 1.0 --mixtures 1 --data "$tables/phones" --seed "$seed" \
        --out "$models/hybrid-ll"
    for objective in ll-lm ll-cll lm cll; do
        beside classify train_hybrid --objective $objective --data "$tables/phones" --init "$models/hybrid-ll" \
            --seed "$seed" --overwrite "$overwrite" --out "$models/hybrid-$objective"
    done
    all_done
    for objective in ll ll-lm ll-cll lm cll; do
        beside run test_gmm --model "$models/hybrid-$objective" --data "$tables/phones" --system hybrid-$objective \
            --task phones --out "$models/test/hybrid-$objective"
    done
    all_done
}
