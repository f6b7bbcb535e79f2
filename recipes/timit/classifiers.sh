# The GMM classifiers of the TIMIT recipe, sourced by its run.sh; they use: root exp seed overwrite.

classify() { run "$@" --conf "$root/conf/timit_gmm.toml"; }
tables=$exp/tables

make_classifier_tables() {  # frames in 4 and 6 broad classes, of men, women and both; phone segments in 39 classes
    local who classes
    for who in ma+fe: ma:m fe:f; do
        for classes in 4 6; do
            classify make_tables --mfcc "$exp/mfcc" --labels "$exp/data" --map "$root/conf/timit_classes.toml" \
                --map-table "broad$classes" --gender "${who#*:}" --out "$tables/${who%:*}-$classes"
        done
    done
    classify make_tables --kind segments --mfcc "$exp/mfcc" --labels "$exp/data" --map "$root/conf/timit_phones.toml" \
        --map-table to39 --out "$tables/phones"
}

classify_broad_phones() {  # [PW10] Figures 3 and 4
    local task models criterion system
    for task in {ma+fe,ma,fe}-{4,6}; do
        models=$exp/gmm/$task
        classify train_gmm --data "$tables/$task" --seed "$seed" --out "$models/gmm-ml"
        for criterion in cl mm; do
            classify train_ebw --criterion $criterion --data "$tables/$task" --init "$models/gmm-ml" \
                --overwrite "$overwrite" --out "$models/gmm-$criterion"
        done
        for system in gmm-ml gmm-cl gmm-mm; do
            run test_gmm --model "$models/$system" --data "$tables/$task" --system $system --task "$task" \
                --out "$models/test/$system"
        done
        run sweep_missing --model "$models"/gmm-{ml,cl,mm} --data "$tables/$task" --seed "$seed" --out "$models/missing"
    done
}

classify_segments() {  # [R18] Table 1, row TIMIT
    local models=$exp/gmm/phones objective system
    classify train_gmm --covariance full --ridge 1.0 --mixtures 1 --data "$tables/phones" --seed "$seed" \
        --out "$models/hybrid-ll"
    for objective in ll-lm ll-cll lm cll; do
        classify train_hybrid --objective $objective --data "$tables/phones" --init "$models/hybrid-ll" --seed "$seed" \
            --overwrite "$overwrite" --out "$models/hybrid-$objective"
    done
    for system in hybrid-ll hybrid-ll-lm hybrid-ll-cll hybrid-lm hybrid-cll; do
        run test_gmm --model "$models/$system" --data "$tables/phones" --system $system --task phones \
            --out "$models/test/$system"
    done
}
