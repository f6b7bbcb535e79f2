# Stages 10 to 13 of the TIMIT recipe, GMM classifiers, sourced by its run.sh; they use: root exp nj cluster seed overwrite
# components frames principal peers draws.

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
                --gender "${who#*:}" --most "$frames" --principal "$principal" --out "$tables/${who%:*}-$classes"
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
    classify train_gmm --data "$tables/$task" --mixtures "$components" --seed "$seed" --out "$models/gmm-ml"
    classify tune --trainer train_ebw --data "$tables/$task" --init "$models/gmm-ml" --space exponent=0.1,0.3,1 \
        --fixed criterion=mm iterations=30 --seed "$seed" --out "$models/tune/gmm-mm"  # lambda, by the speakers of dev
    for criterion in cl mm; do
        local -a chosen=(--criterion cl)
        if [ $criterion = mm ]; then chosen=(--conf "$models/tune/gmm-mm/best.toml"); fi
        classify train_ebw "${chosen[@]}" --data "$tables/$task" --init "$models/gmm-ml" \
            --cluster "$cluster" --overwrite "$overwrite" --out "$models/gmm-$criterion"
    done
    for criterion in ml cl mm; do
        run test_gmm --model "$models/gmm-$criterion" --data "$tables/$task" --system gmm-$criterion --task "$task" \
            --out "$models/test/gmm-$criterion"
    done
    if [ -n "$peers" ]; then
        run test_peers --systems $peers --task "$task" --data "$tables/$task" --seed "$seed" --out "$models/peers"
    fi
    run sweep_missing --model "$models"/gmm-{ml,cl,mm} --data "$tables/$task" --repeats "$draws" --seed "$seed" \
        --out "$models/missing"
    run plot_progress --model "$models/gmm-mm" --fields wrong near far --out "$models/margins"  # [PW10] Figure 3b
}

classify_segments() {  # [R18] Table 1, row TIMIT, both halves; settings by what is held out of train and dev
    local models=$exp/gmm/phones objective shape part
    needs "$tables/phones" 10
    local -a data=(--data "$tables/phones" --seed "$seed")
    for shape in full diagonal; do
        classify tune --trainer train_gmm --folds 4 "${data[@]}" --fixed covariance=$shape mixtures=1 \
            --space tied=true,false ridge=0.3,1,3 --out "$models/tune/ml-$shape"
    done
    classify train_gmm "${data[@]}" --with-dev --conf "$models/tune/ml-full/best.toml" --out "$models/hybrid-ll"
    classify train_gmm "${data[@]}" --with-dev --conf "$models/tune/ml-diagonal/best.toml" --out "$models/gmm-ml-diagonal"
    # Hybrid training starts from one covariance for all: on few segments a class that leaves it more to gain.
    classify train_gmm "${data[@]}" --with-dev --mixtures 1 --covariance full --tied --ridge 0.3 --out "$models/start"
    for objective in ll-lm ll-cll lm cll; do
        beside train_on_segments hybrid-$objective $objective start
        beside train_on_segments hybrid-$objective-diagonal $objective gmm-ml-diagonal
    done
    all_done
    for system in hybrid-ll gmm-ml-diagonal hybrid-{ll-lm,ll-cll,lm,cll}{,-diagonal}; do
        beside run test_gmm --model "$models/$system" --data "$tables/phones" --system $system --task phones \
            --out "$models/test/$system"
    done
    all_done
    for part in 0 0.1 0.5 0.9; do  # [R18] Figure 3b, gamma 100
        beside classify train_hybrid "${data[@]}" --with-dev --init "$models/start" --objective ll-lm --generative $part \
            --margin 100 --precision false --ridge 0.05 --rank 10 --epochs 20 --overwrite "$overwrite" \
            --out "$models/lambda_$part"
    done
    all_done
    run sweep_missing --model "$models"/{start,lambda_0,lambda_0.1,lambda_0.5,lambda_0.9} --data "$tables/phones" \
        --repeats "$draws" --seed "$seed" --out "$models/missing"
}

train_on_segments() {  # train_on_segments <system> <objective> <start>
    local space=rate=0.001,0.002
    case $2 in *lm) space=margin=5,10,20 ;; esac
    classify tune --trainer train_hybrid --folds 4 "${data[@]}" --init "$models/$3" --space $space \
        --fixed objective=$2 precision=false ridge=0.05 rank=10 epochs=20 --out "$models/tune/$1"
    classify train_hybrid "${data[@]}" --with-dev --init "$models/$3" --conf "$models/tune/$1/best.toml" \
        --overwrite "$overwrite" --out "$models/$1"
}

if stage 10; then make_classifier_tables; fi
if stage 11; then classify_broad_phones; fi
if stage 12; then classify_segments; fi
if stage 13; then report_results; fi
