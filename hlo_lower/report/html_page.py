"""The frame of the HTML report: its style, which follows light, dark and narrow screens, and its one page."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2127; --soft: #5c6670; --paper: #fff; --card: #f6f7f9; --line: #dde1e6;
  --bar: #3b74c4; --good: #1a7f4b; --warn: #9a6200; --bad: #b3261e; --loop: #d9932f; --none: #c9504a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #9aa4af; --paper: #14171a; --card: #1d2125;
  --line: #343a41; --bar: #6ea3ea; --good: #5fc38d; --warn: #e0a84c; --bad: #f28b82; --loop: #d9a14c;
  --none: #e0736d; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 1.5rem 1rem 3rem; color: var(--ink); background: var(--paper);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .25rem; overflow-wrap: anywhere; }
h3 { font-size: .85rem; margin: 0 0 .4rem; color: var(--soft); font-weight: 600; }
h3.folder { font-size: .95rem; margin: 1.5rem 0 .25rem; color: var(--ink); overflow-wrap: anywhere; }
h3.folder span { font-weight: 400; color: var(--soft); font-size: .85rem; margin-left: .5rem; }
a { color: inherit; text-decoration-color: var(--soft); text-underline-offset: .2em; }
p { margin: .25rem 0; color: var(--soft); overflow-wrap: anywhere; }
p.error { color: var(--bad); white-space: pre-wrap; }
table { width: 100%; border-collapse: collapse; margin: .75rem 0; font-size: .875rem; }
th { text-align: left; color: var(--soft); font-weight: 600; } th, td { padding: .35rem .75rem .35rem 0;
  border-bottom: 1px solid var(--line); vertical-align: top; }
div.table { overflow-x: auto; }
td, .row { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .8rem; }
td:first-child, .folders td:last-child, .folders th { white-space: nowrap; }
.good { color: var(--good); } .warn { color: var(--warn); }
.bad { color: var(--bad); font-weight: 600; }
pre { background: var(--card); padding: .75rem; overflow-x: auto; font-size: .8rem; border-radius: 6px; }
.charts { columns: 270px; column-gap: 1rem; margin: 1rem 0 0; } .charts .chart { break-inside: avoid; }
.chart { background: var(--card); border-radius: 6px; padding: .75rem; margin-bottom: 1rem; }
.bar { display: grid; grid-template-columns: 1fr auto; gap: 0 .75rem; font-size: .8rem; margin-bottom: .4rem; }
.bar b { font-weight: 400; overflow-wrap: anywhere; } .bar em { font-style: normal; }
.bar i { grid-column: 1 / 3; height: .4rem; background: var(--bar); border-radius: 2px; min-width: 2px; }
.wide { margin: 1rem 0; } .wide .bar { grid-template-columns: minmax(0, 12rem) 1fr minmax(0, 13rem);
  align-items: center; } .wide .bar em { color: var(--soft); }
.parts { display: flex; height: .8rem; border-radius: 2px; overflow: hidden; background: var(--line); }
.wide .parts i { height: 100%; border-radius: 0; min-width: 0; }
i.loop, .key.loop::before { background: var(--loop); } i.none, .key.none::before { background: var(--none); }
.key { font-size: .8rem; color: var(--soft); margin-right: 1rem; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: .7rem; height: .7rem; border-radius: 2px;
  margin-right: .35rem; background: var(--bar); }
details, .flat { border-bottom: 1px solid var(--line); } details[open] { padding-bottom: .75rem; }
.row { display: grid; grid-template-columns: 1rem minmax(0, 19rem) 5rem 6.5rem minmax(0, 1fr); gap: 0 .5rem;
  padding: .25rem 0; overflow-wrap: anywhere; }
summary.row { cursor: pointer; list-style: none; } summary.row::-webkit-details-marker { display: none; }
summary.row:hover { background: var(--card); }
.row::before { content: ""; color: var(--soft); } summary.row::before { content: "\\25B8"; }
details[open] > summary.row::before { content: "\\25BE"; }
.row .count { text-align: right; color: var(--soft); } .flat { color: var(--soft); }
.row .bad { font-weight: 400; } .inner { padding-left: 1.5rem; } .inner p { font-size: .85rem; }
@media (max-width: 700px) { thead { display: none; } table, tbody, tr, td { display: block; width: 100%; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; } td { border: 0; padding: .1rem 0 .1rem 6rem;
  position: relative; min-height: 1.3rem; overflow-wrap: anywhere; }
  td:first-child, .folders td:last-child { white-space: normal; }
  td:empty { display: none; } td::before { content: attr(data-title); position: absolute; left: 0; width: 5.5rem;
  color: var(--soft); font-family: system-ui, sans-serif; }
  .row { grid-template-columns: 1rem auto auto minmax(0, 1fr); padding: .4rem 0; }
  .row b { grid-column: 2 / 5; } .row .count { text-align: left; } .row .count.first { grid-column: 2; }
  .row .told { grid-column: 2 / 5; } .inner { padding-left: 0; }
  .wide .bar { grid-template-columns: 1fr auto; } .wide .parts { grid-column: 1 / 3; grid-row: 2; } }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>Scatter report</h1>
{body}
</body>
</html>
"""
