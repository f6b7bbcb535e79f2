"""The style sheet of ``report.html``: colours as variables, one set for light pages and one for dark."""

STYLE = """
:root { color-scheme: light dark; --page: #fcfcfb; --card: #ffffff; --ink: #1d2129; --soft: #5c6470; --rule: #dfe2e6;
  --accent: #2563a8; --warn: #8a4b00; --warn-page: #fff4e0; --good: #19703e; --bad: #a8322a;
  --shade: rgb(30 34 40 / .22);
  --c0: #30343b; --c1: #0072b2; --c2: #d55e00; --c3: #009e73; --c4: #b5519c; --c5: #b58900; --c6: #3f9ccb;
  --c7: #7a6a58; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --card: #1b1f25; --ink: #e6e8eb; --soft: #9aa3ae;
  --rule: #323842; --accent: #7db5ee; --warn: #ffc978; --warn-page: #3a2a10; --good: #69c68f; --bad: #ef8a82;
  --shade: rgb(255 255 255 / .26);
  --c0: #d5d9df; --c1: #56a8e0; --c2: #f08a45; --c3: #35c79b; --c4: #dd8fcb; --c5: #e0bb3f; --c6: #86cdf2;
  --c7: #bba88f; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 2.6rem 0 .8rem; padding-bottom: .3rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; }
p { max-width: 46rem; } .soft, figcaption, caption { color: var(--soft); }
.banner { background: var(--warn-page); color: var(--warn); border-left: 4px solid var(--warn); padding: .8rem 1rem;
  border-radius: 4px; margin: 1.2rem 0; max-width: 52rem; }
pre { background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .7rem 1rem;
  overflow-x: auto;
  font-size: .88rem; }
.scroll { overflow-x: auto; background:
  linear-gradient(to right, var(--page) 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, var(--page) 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to right, var(--shade), transparent) 0 0 / .9rem 100% no-repeat scroll,
  linear-gradient(to left, var(--shade), transparent) 100% 0 / .9rem 100% no-repeat scroll; }
.bar { display: flex; gap: 1rem; align-items: center; min-height: 1.6rem; }
.more { font-size: .8rem; color: var(--accent); } [hidden] { display: none; }
.copy { font: .78rem/1 inherit; font-size: .78rem; color: var(--soft); background: none; cursor: pointer;
  border: 1px solid var(--rule); border-radius: 5px; padding: .3rem .55rem; margin: .3rem 0; }
.copy:hover { color: var(--accent); border-color: var(--accent); }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; }
th button:hover { color: var(--accent); } th[aria-sort] button { color: var(--ink); }
th[aria-sort=ascending] button::after { content: " \\2191"; } th[aria-sort=descending] button::after
  { content: " \\2193"; } .sorted tr.first td { border-top: 0; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1.2rem;
  align-items: start; } .sides > * { min-width: 0; }
.sides figure { max-width: 25rem; } .sides .cell { stroke: var(--rule); stroke-width: .6; }
.examples { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr)); gap: 1rem; }
.examples > * { min-width: 0; } .example h3 { overflow-wrap: anywhere; }
.example p { font-size: .82rem; margin: .4rem 0 0; }
audio { width: 100%; height: 36px; margin: .2rem 0 .4rem; }
.lane { display: grid; grid-template-columns: 3.2rem 1fr; align-items: center; margin: 2px 0; }
.lane > b { font-size: .75rem; font-weight: 400; color: var(--soft); } .lane > div { position: relative;
  min-height: 1.5rem; min-width: 0; }
.lane span { position: absolute; top: 0; bottom: 0; font-size: .8rem; line-height: 1.5rem; text-align: center;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; border-radius: 3px; border: 1px solid var(--card);
  background: color-mix(in srgb, var(--soft) 18%, transparent); }
.lane .off { background: color-mix(in srgb, var(--bad) 30%, transparent); color: var(--bad); font-weight: 600; }
.lane.said .off { background: color-mix(in srgb, var(--good) 26%, transparent); color: var(--good); }
.wave svg { height: 48px; } .wave path { stroke: var(--accent); stroke-width: 1; vector-effect: non-scaling-stroke; }
.shades img { display: block; width: 100%; height: 84px; mix-blend-mode: multiply; }
table { border-collapse: collapse; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .82rem; padding: .3rem .9rem .3rem 0;
  border-bottom: 1px solid var(--rule); white-space: nowrap; }
td { padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--rule); white-space: nowrap; }
td.n, th.n { text-align: right; } tr.first td { border-top: 2px solid var(--rule); } td.best { font-weight: 700; }
.ci { color: var(--soft); font-size: .85em; } .good { color: var(--good); } .bad { color: var(--bad); }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1.2rem; max-width: 46rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 310px), 1fr)); gap: 1rem;
  align-items: start; } .large { grid-column: 1 / -1; max-width: 680px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px;
  padding: .8rem .9rem; }
.rates { display: grid; gap: 1rem; margin: 1rem 0; }
.rates.beside { grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); }
figure h3 { margin: 0 0 .3rem; font-size: .92rem; } figcaption { font-size: .82rem; }
svg { width: 100%; height: auto; display: block; } .rates svg { max-height: 340px; } img { max-width: 100%; }
.legend { display: flex; flex-wrap: wrap; gap: .15rem 1rem; font-size: .84rem; margin-top: .4rem; }
.legend i { display: inline-block; width: .72em; height: .72em; margin-right: .4em; }
.legend .m0 { border-radius: 50%; } .legend .m2 { clip-path: polygon(50% 0, 100% 100%, 0 100%); }
.legend .hollow { border: 2px solid var(--soft); transform: rotate(45deg) scale(.8); }
svg text { font-family: inherit; fill: var(--soft); } .tick { font-size: 10.5px; } .label { font-size: 11.5px; }
.grid { stroke: var(--rule); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1; }
.line, .whisker, .paper, .steps { fill: none; stroke-width: 1.8; } .whisker { stroke-width: 1.4; }
.dots, .points { fill: none; stroke-linecap: round; stroke-width: 4.5; } .points { stroke-width: 3;
  stroke-opacity: .7; } .line.again { stroke-dasharray: 5 3; } .dots.again, .points.again { stroke-linecap: square; }
.paper { stroke-width: 1.6; } .steps { fill-opacity: .14; } .region { fill-opacity: .22; }
  .cell { fill: var(--accent); shape-rendering: crispEdges; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--accent); } code { font-size: .86em; }
@media (prefers-color-scheme: dark) { .shades img { filter: invert(1); mix-blend-mode: screen; } }
@media (max-width: 600px) { main { padding: 1.5rem 1rem 3rem; } table { font-size: .82rem; }
  td, th { padding-right: .6rem; } .rates .tick, .rates .label { font-size: 13px; } }
@media print { :root { font-size: 12px; } body { font-size: 1rem; background: none; } main { padding: 0; }
  figure, tr { break-inside: avoid; } h2, h3, thead { break-after: avoid; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary, details.steps, .bar, .copy, audio { display: none; } pre { white-space: pre-wrap; }
  td, th { padding-right: .6rem; } .plots { grid-template-columns: 1fr 1fr 1fr; } }
"""
