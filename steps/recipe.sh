# Sourced by every recipe's run.sh: options, stages, jobs, and the way steps are called. Speech recipes source speech.sh.
set -Eeuo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe=$(basename "$(cd "$(dirname "$0")" && pwd)")
python=python3
exp=$root/exp/$recipe
program=recipes/$recipe/$(basename "$0")
if [ -n "${MARGO_PYTHON:-}" ]; then  # the command `margo recipe` runs this
    python=$MARGO_PYTHON exp=exp/$recipe program="margo recipe $recipe"
elif [ -x "$root/.venv/bin/python" ]; then
    python=$root/.venv/bin/python
fi

# Options of every recipe, with their defaults; a run.sh may change these, and adds its own with `options+=(name)`.
stage=""
stop_stage=""
corpus=""
nj=2
seed=0
cluster=""
partial=false
overwrite=false
allow_pipes=false
systems=""
conf=""
protocol=default
options=(stage stop_stage corpus exp nj seed cluster partial overwrite allow_pipes systems conf protocol)

stages=()    # stages[N]=title of what a recipe does; speech.sh takes its own from conf/systems.toml
protocols=default  # that --protocol takes, with spaces between; run.sh tells what paper means, where it has that
offers=""    # systems of that table, or families of them, that --criteria takes
criteria=""  # those to train; a recipe that takes --mix has mix too
current=""
confs=(--conf "$root/conf/$recipe.toml")  # of every step: the recipe's own settings, then those of --conf
figures=$root/conf/paper/$recipe.toml  # of a paper on the same data, to stand beside ours
fault=""     # what is wrong with the systems asked for

# What the table tells of the systems on offer, in its order; see steps/plan.py.
offered=()
declare -A stage_of=() step_of=() start_of=() reads_of=() options_of=() what_of=()

usage_error() { echo "$recipe: $1" >&2; exit 2; }

show_help() {  # the header comment of run.sh, and what is the same for all recipes
    local line n name
    while IFS= read -r line; do
        case $line in
            '#!'*) ;;
            '# '*) line=${line#\# }; echo "${line/recipes\/$recipe\/run.sh/$program}" ;;
            '#') echo ;;
            *) break ;;
        esac
    done < "$0"
    echo "  --stage N        first stage to run (the first); --stop-stage M: last stage to run (the last)"
    echo "  --exp DIR        where everything is written (exp/$recipe)"
    if [ -n "${mix+set}" ]; then echo "  --mix \"$mix\"    numbers of Gaussians: a model of every system for each"; fi
    echo "  --criteria \"...\" systems to train, score and report ($criteria)"
    echo "  --systems FILE   a table like conf/systems.toml that adds systems to it, or replaces some"
    echo "  --conf FILE      TOML: tables named after steps that set options of theirs, over conf/$recipe.toml"
    echo "  --nj N           local processes (2); --cluster ADDR: a Dask scheduler instead. Neither changes the results"
    echo "  --seed N         seed of everything random (0)"
    echo "  --allow-pipes true: run the commands in wav.scp, where there are any"
    echo "  --overwrite true replace models that were trained with other settings"
    printf '\nStages:\n'
    for n in "${!stages[@]}"; do printf '  %-3s%s\n' "$n" "${stages[n]}"; done
    printf '\nSystems of --criteria:\n'
    for name in "${offered[@]}"; do printf '  %-23s %s\n' "$name" "${what_of[$name]}"; done
    exit 0
}

parse_options() {
    local word variable known
    local whole=()  # what repeats the run, from its first stage
    for (( word = 1; word <= $#; word++ )); do
        case ${!word} in --stage) word=$(( word + 1 )) ;; *) whole+=("${!word}") ;; esac
    done
    invocation="$program$(for word in "${whole[@]}"; do [[ $word =~ ^[[:alnum:].-]+(\ [[:alnum:].-]+)+$ ]] && printf ' "%s"' "$word" || printf ' %q' "$word"; done)"
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) read_plan; show_help ;;
            --*) ;;
            *) usage_error "unexpected argument '$1' (see --help)" ;;
        esac
        word=${1#--}; variable=${word//-/_}; known=" ${options[*]} "
        [[ $word != *_* && $known == *" $variable "* ]] || usage_error "unknown option '$1', expected one of $(printf -- '--%s ' "${options[@]//_/-}")(see --help)"
        [ $# -ge 2 ] && [[ $2 != --* ]] || usage_error "option '$1' needs a value"
        printf -v "$variable" '%s' "$2"
        shift 2
    done
    read_plan
    check_options
    trap 'failed $?' ERR
    trap 'interrupted 129' HUP
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM
    trap 'ended $?' EXIT
}

read_plan() {  # --criteria, --mix and --systems against the table of systems: its rows, the stages, or what is wrong
    local plan kind name a b c d e f
    "$python" -c 'import margo' 2> /dev/null || { echo "$recipe: margo cannot be imported; run make install in $root" >&2; exit 1; }
    plan=$("$python" "$root/steps/plan.py" --recipe="$recipe" --offers="$offers" --criteria="$criteria" ${mix+--mix="$mix"} \
        --systems="$systems" --table="$conf" --exp="$exp" --corpus="$corpus") || exit
    while IFS=$'\t' read -r kind name a b c d e f; do
        case $kind in
            fault) fault=$name ;;
            path) printf -v "$name" '%s' "$a" ;;
            stage) stages[name]=$a ;;
            system)
                if [ "$e" = - ]; then e=""; fi
                offered+=("$name"); stage_of[$name]=$a; step_of[$name]=$b; start_of[$name]=$c; reads_of[$name]=$d
                options_of[$name]=$e; what_of[$name]=$f ;;
        esac
    done <<< "$plan"
}

check_options() {
    local list=" ${!stages[*]} " first last name n
    [ -z "$fault" ] || usage_error "$fault"
    first=${list# }; first=${first%% *}
    last=${list% }; last=${last##* }
    stage=${stage:-$first}; stop_stage=${stop_stage:-$last}
    [[ $stage =~ ^[0-9]+$ ]] || usage_error "--stage is '$stage', expected one of${list% }"
    [[ $stop_stage =~ ^[0-9]+$ ]] || usage_error "--stop-stage is '$stop_stage', expected one of${list% }"
    (( 10#$stage <= 10#$last )) || usage_error "--stage is $stage, expected one of${list% }"
    (( 10#$stage <= 10#$stop_stage )) || usage_error "no stage from $stage to $stop_stage"
    for (( n = 10#$stage; n <= 10#$stop_stage && n <= 10#$last; n++ )); do [[ $list == *" $n "* ]] && break; done
    (( n <= 10#$stop_stage && n <= 10#$last )) || usage_error "no stage from $stage to $stop_stage; there are${list% }"
    [[ $nj =~ ^[1-9][0-9]*$ ]] || usage_error "--nj is '$nj', expected a whole number, 1 or more"
    [[ $seed =~ ^[0-9]+$ ]] || usage_error "--seed is '$seed', expected a whole number"
    [ -z "$conf" ] || confs+=(--conf "$conf")
    [[ $protocol =~ ^[a-z]+$ && " $protocols " == *" $protocol "* ]] || \
        usage_error "--protocol is '$protocol', expected ${protocols// / or }"
    for name in partial overwrite allow_pipes; do
        [[ ${!name} == true || ${!name} == false ]] || usage_error "--${name//_/-} is '${!name}', expected true or false"
    done
    [ -z "$corpus" ] || [ -e "$corpus" ] || usage_error "--corpus $corpus: no such file or folder"
    [ -z "$systems" ] || export MARGO_SYSTEMS=$systems
}

# ---- Stages

# `if stage N [system ...]`: is stage N to run, and, where it is one that trains systems, is any of them wanted?
stage() {
    local number=$1 trains
    shift
    (( 10#$stage <= number && number <= 10#$stop_stage )) || return 1
    [ $# -gt 0 ] || set -- $(offered_in "$number")
    trains=$(only "$@")
    [ $# -eq 0 ] || [ -n "$trains" ] || return 1
    current=$number
    trains=${trains//$'\n'/ }
    echo "== $recipe: stage $number: ${stages[number]}${trains:+ ($trains)}" >&2
}

wanted() { [[ " $criteria " == *" $1 "* ]]; }

# The ones of the named systems that are wanted, in the order given.
only() { local name; for name in "$@"; do if wanted "$name"; then echo "$name"; fi; done; }

# The systems on offer that belong to a stage; those of them that are wanted.
offered_in() { local name; for name in "${offered[@]}"; do if [ "${stage_of[$name]}" = "$1" ]; then echo "$name"; fi; done; }
wanted_in() { only $(offered_in "$1"); }

failed() {
    end_jobs
    echo "$recipe: stage $current failed (exit $1), for the reason given above; resume with --stage $current" >&2
    exit "$1"
}

interrupted() {
    end_jobs
    echo "$recipe: interrupted; resume with --stage ${current:-$stage}" >&2
    exit "$1"
}

ended() {  # a range of stages without work is as wrong as one without stages
    local stages="stage $stage"
    end_jobs
    if (( 10#$stage < 10#$stop_stage )); then stages="stages $stage to $stop_stage"; fi
    [ "$1" != 0 ] || [ -n "$started" ] || usage_error "nothing to do: no system of --criteria ($criteria) belongs to $stages"
}

# ---- Jobs. All that runs does so in the background and is waited for: a signal is then answered at once.

running=()  # process ids of what this shell has started
started=""  # whether it has ever started any

start_job() { "$@" & running+=("$!"); started=yes; }

# The exit status of a job, which is then forgotten.
await() {
    local job status=0
    local -a others=()
    wait "$1" || status=$?
    for job in "${running[@]}"; do [ "$job" = "$1" ] || others+=("$job"); done
    running=("${others[@]}")
    return "$status"
}

# End all jobs, and what they have started in their turn; one that has not ended in ten seconds is killed.
end_jobs() {
    local job n
    trap '' HUP INT TERM
    for job in "${running[@]}"; do kill -TERM "$job" 2> /dev/null || true; done
    for job in "${running[@]}"; do
        for (( n = 0; n < 100; n++ )); do kill -0 "$job" 2> /dev/null || continue 2; sleep 0.1; done
        kill -KILL "$job" 2> /dev/null || true
    done
    running=()
}

# Run a command beside others, --nj of them at a time; all_done waits for the last. One that fails ends the others.
beside() {
    while (( ${#running[@]} >= nj )); do next_done; done
    start_job apart "$@"
}
all_done() { while (( ${#running[@]} > 0 )); do next_done; done; }

apart() {  # in a shell of its own, which passes on that it is to end
    running=()
    trap - ERR EXIT
    trap 'end_jobs; exit 143' HUP INT TERM
    "$@"
}

next_done() {  # wait until some job has ended, and well
    local job
    while true; do
        for job in "${running[@]}"; do
            if ! kill -0 "$job" 2> /dev/null; then await "$job"; return; fi
        done
        sleep 0.1
    done
}

# ---- Steps

# Run steps/<verb>.py or local/<verb>.py, or a program given by its whole path, with the arguments.
run() {
    local program=$root/steps/$1.py
    [ -f "$program" ] || program=$root/local/$1.py
    if [[ $1 == /* ]]; then program=$1; fi
    start_job "$python" "$program" "${@:2}"
    await "$!"
}

work() { run "$@" "${confs[@]}" --nj "$nj" --cluster "$cluster"; }
alone() { run "$@" "${confs[@]}" --cluster "$cluster"; }  # for steps run beside each other: one process each

# Say which stage makes a folder that a stage of a recipe's own reads, where it is empty or a step did not end well.
needs() {
    if [ -e "$1/started.json" ] || ! compgen -G "$1/*" > /dev/null; then
        echo "$recipe: $1 is not complete: run stage $2 first (--stage $2)" >&2
        return 1
    fi
}

# Where there is no --corpus, make the embedded (synthetic) one, as the options given say, and use that.
corpus_or_embedded() {
    [ -n "$corpus" ] || { corpus=$exp/corpus; run mini_corpus "$recipe" --out "$corpus" --seed "$seed" "$@"; }
}

# results.json, RESULTS.md and report.html of all that was scored, beside the paper's figures.
report_results() {
    [ -f "$figures" ] || figures=""
    run report --exp "$exp" --recipe "$recipe" ${figures:+--paper "$figures"} --command "$invocation" "$@"
}

# The test sets of several runs, whose folders are given, scored together, and the report of that: in EXP/all.
report_pooled() {
    local model
    run pool --exp "$@" --out "$exp/all"
    exp=$exp/all
    for model in "$exp"/decode/*/; do run score --hyp "${model}test" --data "$exp/data/test" --by speaker; done
    report_results
}
