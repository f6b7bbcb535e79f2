# Stages 10 to 13 of the TIMIT recipe, GMM classifiers, sourced by its run.sh; they use: root exp nj seed overwrite.

classify() { run "$1" --conf "$root/conf/timit_gmm.toml" ${conf:+--conf "$conf"} "${@:2}"; }
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
    needs "$exp/data" 0
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
    needs "$tables/ma+fe-4" 10
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

classify_segments() {  # [R18] Table 1, row TIMIT; settings by what is held out of train and dev
    local models=$exp/gmm/phones objective
    needs "$tables/phones" 10
    local -a data=(--data "$tables/phones" --seed "$seed") full=(covariance=full mixtures=1)
    classify tune --trainer train_gmm --folds 4 "${data[@]}" --fixed "${full[@]}" --space tied=true,false ridge=0.3,1,3 \
        --out "$models/tune/hybrid-ll"
    classify train_gmm "${data[@]}" --with-dev --conf "$models/tune/hybrid-ll/best.toml" --out "$models/hybrid-ll"
    # Hybrid training starts from one covariance for all: on few segments a class that leaves it more to gain.
    classify train_gmm "${data[@]}" --with-dev --mixtures 1 --covariance full --tied --ridge 0.3 --out "$models/start"
    for objective in ll-lm ll-cll lm cll; do beside train_on_segments $objective; done
    all_done
    for objective in ll ll-lm ll-cll lm cll; do
        beside run test_gmm --model "$models/hybrid-$objective" --data "$tables/phones" --system hybrid-$objective \
            --task phones --out "$models/test/hybrid-$objective"
    done
    all_done
}

train_on_segments() {
    local out=hybrid-$1 space=rate=0.001,0.002
    case $1 in *lm) space=margin=5,10,20 ;; esac
    classify tune --trainer train_hybrid --folds 4 "${data[@]}" --init "$models/start" --space $space \
        --fixed objective=$1 precision=false ridge=0.05 rank=10 epochs=20 --out "$models/tune/$out"
    classify train_hybrid "${data[@]}" --with-dev --init "$models/start" --conf "$models/tune/$out/best.toml" \
        --overwrite "$overwrite" --out "$models/$out"
}

if stage 10; then make_classifier_tables; fi
if stage 11; then classify_broad_phones; fi
if stage 12; then classify_segments; fi
if stage 13; then report_results; fi
