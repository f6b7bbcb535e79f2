#!/usr/bin/env bash
# Two spirals, three draws: GMM classifiers by maximum likelihood, conditional likelihood and margin, after [PW10] 5.1.
#
# Usage: recipes/spirals/run.sh [--option value ...]
#   --factors "1 2 5 10 50"   F in the figure of convergence ([PW10] Figure 2); --iterations 100: how far it goes
source "$(dirname "$0")/../../steps/recipe.sh"
stages=([0]="data" [10]="maximum likelihood" [11]="conditional likelihood and margin" [12]="score and plots"
    [13]="convergence by F, [PW10] Figure 2" [14]="report")
offers="gmm-ml gmm-cl gmm-mm"
criteria=$offers
factors="1 2 5 10 50"
iterations=100
options+=(criteria factors iterations)
parse_options "$@"
draws="0 1 2"

if stage 0; then
    run spirals_data --seed "$seed" --out "$exp/data"
fi

if stage 10; then
    for n in $draws; do
        run train_gmm "${confs[@]}" --data "$exp/data/$n" --seed "$seed" --out "$exp/$n/gmm-ml_12"
    done
fi

if stage 11; then
    for n in $draws; do
        for system in $(wanted_in 11); do
            run "${step_of[$system]}" ${options_of[$system]} "${confs[@]}" --data "$exp/data/$n" \
                --init "$exp/$n/${start_of[$system]}_12" --overwrite "$overwrite" --out "$exp/$n/${system}_12"
        done
    done
fi

if stage 12; then
    for system in $criteria; do
        run test_gmm --model "$exp"/[0-9]/"${system}_12" --data "$exp"/data/[0-9] --system "$system" \
            --out "$exp/test/${system}_12"
    done
    run plot_boundary --model $(for system in $criteria; do echo "$exp/0/${system}_12"; done) --data "$exp/data/0" \
        --out "$exp/boundary"
fi

if stage 13; then
    for system in $(wanted_in 11); do
        for factor in $factors; do
            beside run train_ebw ${options_of[$system]} "${confs[@]}" --data "$exp/data/0" --init "$exp/0/gmm-ml_12" \
                --factor "$factor" --doubling true --tolerance 0 --iterations "$iterations" --overwrite "$overwrite" \
                --out "$exp/factors/$system/F_$factor"
        done
        all_done
        run plot_progress --model "$exp/factors/$system"/F_* --out "$exp/factors/$system/figure"
    done
fi

if stage 14; then report_results; fi
