# Stages 14 to 16 of recipes/digits/run.sh: figures and sweeps of the papers.
if stage 14 hybrid-ll-lm; then trade_off "${mix##* }"; fi

if stage 15 hybrid-ll-lm; then
    train sweep_labels --labels $labels --objectives $objectives --data "$exp/data/white" \
        --paper "$figures" --out "$exp/labels"
fi

if stage 16 mm-smo; then
    for m in $mix; do regularise "$m"; done
    if [ -n "$(only mm-grad)" ]; then race "${mix%% *}"; fi
fi
