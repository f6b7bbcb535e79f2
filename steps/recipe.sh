# Sourced by every recipe's run.sh: options, stages, and the way steps are called. See any recipes/*/run.sh.
set -Eeuo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe=$(basename "$(cd "$(dirname "$0")" && pwd)")
conf=$root/conf/$recipe.toml
python=python3
if [ -x "$root/.venv/bin/python" ]; then python=$root/.venv/bin/python; fi

# Options of every recipe, with their defaults; a run.sh may change these, and adds its own with `options+=(name)`.
stage=""
stop_stage=""
corpus=""
exp=$root/exp/$recipe
nj=2
seed=0
cluster=""
partial=false
overwrite=false
options=(stage stop_stage corpus exp nj seed cluster partial overwrite)
current=""

usage_error() { echo "$recipe: $1" >&2; exit 2; }

show_help() {  # the header comment of run.sh
    local line
    while IFS= read -r line; do
        case $line in
            '#!'*) ;;
            '# '*) echo "${line#\# }" ;;
            '#') echo ;;
            *) break ;;
        esac
    done < "$0"
    exit 0
}

parse_options() {
    local name variable known
    invocation="recipes/$recipe/run.sh$(for name; do [[ $name =~ ^[[:alnum:].-]+(\ [[:alnum:].-]+)+$ ]] && printf ' "%s"' "$name" || printf ' %q' "$name"; done)"
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) show_help ;;
            --*) ;;
            *) usage_error "unexpected argument '$1' (see --help)" ;;
        esac
        name=${1#--}; variable=${name//-/_}; known=" ${options[*]} "
        [[ $name != *_* && $known == *" $variable "* ]] || usage_error "unknown option '$1' (see --help)"
        [ $# -ge 2 ] && [[ $2 != --* ]] || usage_error "option '$1' needs a value"
        printf -v "$variable" '%s' "$2"
        shift 2
    done
    check_options
}

absolute() { "$python" -c 'import os, sys; print(os.path.abspath(sys.argv[1]))' "$1"; }

check_options() {
    local list first last name
    list=" $(grep -oE '^if stage [0-9]+' "$0" | grep -oE '[0-9]+' | tr '\n' ' ')"
    first=${list# }; first=${first%% *}
    last=${list% }; last=${last##* }
    stage=${stage:-$first}; stop_stage=${stop_stage:-$last}
    [[ $stage =~ ^[0-9]+$ ]] || usage_error "--stage is '$stage', expected one of$list"
    [[ $stop_stage =~ ^[0-9]+$ ]] || usage_error "--stop-stage is '$stop_stage', expected one of$list"
    (( 10#$stage <= 10#$last )) || usage_error "--stage is $stage, expected one of$list"
    (( 10#$stage <= 10#$stop_stage )) || usage_error "no stage from $stage to $stop_stage"
    for (( n = 10#$stage; n <= 10#$stop_stage && n <= 10#$last; n++ )); do [[ $list == *" $n "* ]] && break; done
    (( n <= 10#$stop_stage && n <= 10#$last )) || usage_error "no stage from $stage to $stop_stage; there are$list"
    [[ $nj =~ ^[1-9][0-9]*$ ]] || usage_error "--nj is '$nj', expected a whole number, 1 or more"
    [[ $seed =~ ^[0-9]+$ ]] || usage_error "--seed is '$seed', expected a whole number"
    check_systems
    for name in partial overwrite; do
        [[ ${!name} == true || ${!name} == false ]] || usage_error "--$name is '${!name}', expected true or false"
    done
    for name in corpus exp; do  # from where the caller is, and one spelling of each: models remember their inputs
        [ -z "${!name}" ] || printf -v "$name" '%s' "$(absolute "${!name}")"
    done
    [ -z "$corpus" ] || [ -e "$corpus" ] || usage_error "--corpus $corpus: no such file or folder"
    "$python" -c 'import margo' 2> /dev/null || { echo "$recipe: margo cannot be imported; run make install in $root" >&2; exit 1; }
    trap 'failed $?' ERR
    trap 'echo "$recipe: interrupted; resume with --stage ${current:-$stage}" >&2; exit 130' INT TERM
}

check_systems() {  # --mix and --criteria, where the recipe has them; the header comment lists what --criteria takes
    local m name known
    if [ -n "${mix+set}" ]; then
        [[ -n ${mix// } ]] || usage_error "--mix is empty, expected whole numbers"
        for m in $mix; do
            [[ $m =~ ^[1-9][0-9]*$ ]] || usage_error "--mix has '$m', expected whole numbers, 1 or more"
        done
    fi
    known=$(grep -m 1 -oE -- '--criteria "[^"]*"' "$0") || return 0
    known=${known#*\"}; known=${known%\"}
    [[ -n ${criteria// } ]] || usage_error "--criteria is empty, expected some of: $known"
    for name in $criteria; do
        [[ " $known " == *" $name "* ]] || usage_error "--criteria has '$name', expected some of: $known"
    done
}

failed() {
    echo "$recipe: stage $current failed (exit $1), for the reason given above; resume with --stage $current" >&2
    exit "$1"
}

# `if stage N [criterion ...]`: is stage N to run, and any of the criteria, where some are named, wanted?
stage() {
    local number=$1 criterion
    shift
    (( 10#$stage <= number && number <= 10#$stop_stage )) || return 1
    current=$number
    for criterion in "$@"; do
        wanted "$criterion" && { echo "== $recipe: stage $number ($criterion)" >&2; return 0; }
    done
    [ $# -eq 0 ] && echo "== $recipe: stage $number" >&2
}

wanted() { [[ " $criteria " == *" $1 "* ]]; }

# The ones of the named criteria that are wanted, in the order given.
only() { local c; for c in "$@"; do if wanted "$c"; then echo "$c"; fi; done; }

# Run steps/<verb>.py or local/<verb>.py with the arguments.
run() {
    local verb=$1 folder=steps
    shift
    [ -f "$root/steps/$verb.py" ] || folder=local
    "$python" "$root/$folder/$verb.py" "$@"
}

# Where there is no --corpus, make the embedded (synthetic) one and use that.
corpus_or_embedded() {
    [ -n "$corpus" ] || { corpus=$exp/corpus; run mini_corpus "$recipe" --out "$corpus" --seed "$seed"; }
}

# results.json, RESULTS.md and report.html of all that was scored, beside the paper's figures.
report_results() {
    local paper=$root/conf/paper/$recipe.toml
    [ -f "$paper" ] || paper=""
    run report --exp "$exp" --recipe "$recipe" ${paper:+--paper "$paper"} --command "$invocation" "$@"
}

# ---- The stages that speech recipes share. They use: exp conf mix criteria sets nj cluster seed overwrite.

speech_defaults() {
    mix="1 2 4"
    criteria="ml mce mmi mm lme-gd lme-sdp"
    sets="train dev test"  # to decode and score
    options+=(mix criteria)
}

work() { run "$@" --conf "$conf" --nj "$nj" --cluster "$cluster"; }

make_features() {  # data/<set> -> mfcc/<set>
    local set
    for set in train dev test; do
        run make_mfcc --conf "$root/conf/mfcc.toml" --conf "$conf" --data "$exp/data/$set" --out "$exp/mfcc/$set" \
            --nj "$nj" --cluster "$cluster"
    done
}

train_system() {  # train_system <system> [option ...]: <system>_<m> for every m of --mix
    local system=$1 m init=""
    shift
    local -a data=(--data "$exp/mfcc/train" --dev "$exp/mfcc/dev" --seed "$seed" --overwrite "$overwrite")
    for m in $mix; do
        local -a common=("${data[@]}" --out "$exp/${system}_$m" "$@")
        case $system in
            ml) work train_ml --init "$init" --mixtures "$m" "${common[@]}"; init=$exp/ml_$m ;;
            mce|mmi|mm) work "train_$system" --init "$exp/ml_$m" "${common[@]}" ;;
            lme-sdp) work train_lme --init "$exp/$(lme_seed)_$m" "${common[@]}" ;;
            lme-gd) work train_lme --method gd --init "$exp/$(lme_seed)_$m" "${common[@]}" ;;
            lme-sdp-hard)
                work train_lme --hard true --misrecognised true --tokens 300 --init "$exp/$(lme_seed)_$m" "${common[@]}" ;;
            *) echo "$recipe: no system called $system" >&2; return 1 ;;
        esac
    done
}

lme_seed() { if wanted mce; then echo mce; else echo ml; fi; }  # LME starts from MCE where there is one, as in [LJ07]

# Run a command beside others, --nj of them at a time; all_done waits for the last and fails if any failed.
running=()
beside() {
    (trap - ERR; "$@") &
    running+=($!)
    if (( ${#running[@]} >= nj )); then wait "${running[0]}"; running=("${running[@]:1}"); fi
}
all_done() {
    local job
    for job in "${running[@]}"; do wait "$job"; done
    running=()
}

alone() { run "$@" --conf "$conf" --cluster "$cluster"; }  # for steps run beside each other: one process each

align_and_list() {  # ml_<m> on train -> ali/ml_<m>, nbest/ml_<m>
    local m step
    for m in $mix; do
        for step in align:ali nbest:nbest; do
            beside alone "${step%:*}" --model "$exp/ml_$m" --data "$exp/mfcc/train" --out "$exp/${step#*:}/ml_$m"
        done
    done
    all_done
}

decode_and_score() {  # decode_and_score <score option ...>: <system>_<m> -> decode/<system>_<m>/<set>/{hyp,score}
    local system m
    for system in $criteria; do
        for m in $mix; do beside decode_and_score_one "${system}_$m" "$@"; done
    done
    all_done
}

decode_and_score_one() {
    local model=$1 set
    local -a data=()
    shift
    for set in $sets; do data+=("$exp/mfcc/$set"); done
    alone decode --model "$exp/$model" --data "${data[@]}" --out "$exp/decode/$model" || return
    for set in $sets; do
        run score --hyp "$exp/decode/$model/$set" --data "$exp/mfcc/$set" "$@" || return
    done
}
