/* The scatters of modules, and other ops that were changed or are rejected: rows, source lines, details and overview. */

/* --- rows, made of the report --- */

/* A record with what it has in common with the one that it is like. */
function inFull(record, byNumber) {
  if (!("like" in record)) return record;
  const full = { ...byNumber.get(record.like), ...record };
  for (const name of Object.keys(full)) if (full[name] === null || name === "like") delete full[name];
  return full;
}

/* About how many microseconds the chosen form takes, by the target's table of costs; null where none is known. */
function costOf(record, evidence) {
  const chosen = record.why && record.why.strategy;
  for (const number of (record.evidence || {}).strategy || []) {
    if (evidence[number].code === "costs" && evidence[number].strategy === chosen) return evidence[number].us;
  }
  return null;
}

/* The lines where an op stands, "a.py:3"; a line of the module itself with the module's name. */
function placesOf(op) {
  const places = op.record ? [op.record.location] : op.one ? op.one.places : [op.where];
  const base = op.own.module.file.split("/").pop();
  return places.filter(Boolean).map((place) => place.replace(/^line /, `${base}:`));
}

/* What to type for modules under further options. */
function commandFor(files, target, options) {
  const quoted = files.map((file) => /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", "'\\''")}'`);
  return ["hlo-lower convert", ...quoted, "-o", files.length > 1 ? "lowered/" : "lowered.mlir", "--target", target, ...options].join(" ");
}

const GUARDS = { always: "proved away", never: "nothing inside", unknown: "needed" };
const names = shortNames(REPORT.modules.map((module) => module.file));
const modules = [];
const ops = [];

REPORT.modules.forEach((module, at) => {
  const words = WORDS.modules[at];
  const own = { id: `m${at + 1}`, module, words, name: names[at], ops: [] };
  const byNumber = new Map(module.records.map((record) => [record.number, record]));
  module.records.forEach((short, place) => {
    const record = inFull(short, byNumber);
    const told = Object.fromEntries(WORDS.record.map((name, n) => [name, text(words.records[place][n])]));
    const guard = told.rule === "none" ? "" : record.bounds.code === "assumed_inside" ? "assumed away" : GUARDS[record.in_bounds];
    own.ops.push({
      id: `${own.id}-s${record.number}`, kind: "scatter", own, record, place, told, op: "stablehlo.scatter", guard,
      cost: costOf(record, module.evidence),
      facets: {
        op: "stablehlo.scatter", kind: record.kind, rule: told.rule, cause: told.cause, guard, from: told.guard,
        unique: record.unique, subset: record.subset, combiner: record.combiner, folder: module.group,
        target: module.target, outcome: told.rule === "none" ? "no rule" : told.rule === "kept" ? "kept" : "lowered",
      },
      label: `scatter ${record.number}`,
      cells: [told.where, told.writes, told.rule, told.rule === "none" ? told.why : told.bounds, told.unique],
    });
  });
  module.changes.forEach((change, n) => {
    const [why, kind] = words.changes[n].map(text);
    own.ops.push({
      id: `${own.id}-c${n + 1}`, kind: "change", own, op: change.op, label: change.op, cost: null, guard: "", why, where: change.where,
      facets: { op: change.op, outcome: change.outcome, cause: change.outcome === "left" ? kind : "", folder: module.group, target: module.target },
      cells: [placeOf(change.where, module.file), `${change.op}${change.count > 1 ? `, ${count(change.count)} times` : ""}`, change.outcome, why, ""],
    });
  });
  own.refused = module.refused.map((one, n) => {
    const [op, why] = words.refused[n].map(text);
    const isTold = op === "stablehlo.scatter" && own.ops.some((other) => other.kind === "scatter" && other.told.rule === "none");
    if (!isTold) own.ops.push({
      id: `${own.id}-r${n + 1}`, kind: "refused", own, op, label: op, cost: null, guard: "", why, one,
      facets: { op, outcome: "rejected", cause: why, folder: module.group, target: module.target },
      cells: [one.places.map((place) => placeOf(place, module.file)).join(", "), `${plural(one.count, "op")}: ${op}`, "rejected", why, ""],
    });
    return { op, why, label: `${op}: ${why}`, count: one.count, remedy: one.remedy, places: one.places };
  });
  own.scatters = own.ops.filter((op) => op.kind === "scatter");
  own.guards = own.scatters.filter((op) => op.guard === "needed").length;
  own.loops = own.scatters.filter((op) => op.facets.rule === "while").length;
  own.state = module.error ? "unreadable" : own.refused.length ? "rejected in part" : "accepted whole";
  own.facets = {
    state: own.state, cause: own.refused.map((one) => one.label),
    remedy: own.refused.map((one) => one.remedy || "none known"), together: module.best_options.join(" "), folder: module.group, target: module.target,
    guard: own.guards ? "has guards" : "no guard", loop: own.loops ? "has loops" : "no loop",
    op: [...new Set(own.ops.map((op) => op.op))],
    kind: [...new Set(own.scatters.map((op) => op.record.kind))], rule: [...new Set(own.scatters.map((op) => op.facets.rule))],
  };
  own.best = module.best_options.join(" ");
  own.all = !module.notes.some((note) => note.startsWith("try: ") && note.includes("these are left"));
  own.peaks = module.memory.map((curve) => curve.peak);
  own.why = module.error ? module.error.split("\n")[0] : own.refused.map((one) => one.label).join("; ");
  own.hay = `${module.file} ${own.why} ${own.state} ${module.target}`.toLowerCase();
  modules.push(own);
  ops.push(...own.ops);
});
for (const op of ops) {
  const scope = op.record ? `${op.record.scope || ""} ${op.record.dtype || ""} ${op.record.kind} @${op.record.function}` : "";
  op.places = placesOf(op);
  op.hay = `${op.own.name} ${op.op} ${op.cells.join(" ")} ${op.places.join(" ")} ${scope}`.toLowerCase();
}

/* --- what stands below a row --- */

function bytes(size) {
  const power = size ? Math.min(Math.floor(Math.log2(size) / 10), 3) : 0;
  return power ? `${(size / 2 ** (10 * power)).toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} ${["B", "KiB", "MiB", "GiB"][power]}` : `${size} B`;
}
const peaks = (own) => own.peaks.map(bytes).join(" → ");

const shape = (sizes) => sizes ? sizes.map((size) => size === null ? "?" : size).join("x") || "scalar" : "";

function moduleDetails(own) {
  const { module } = own;
  const verdict = module.verdict ? (module.verdict.ok ? "no difference found" : "differs, or not decided") : module.convert_seconds === null ? "" : "not verified";
  return el("div", {},
    module.error ? el("pre", { class: "bad" }, module.error) : "",
    el("dl", {},
      pair("file", module.file), pair("target", `${module.target}, oob ${module.oob}`),
      pair("converted in", time(module.convert_seconds)), pair("verified in", time(module.verify_seconds)),
      pair("verification", verdict), pair("exit code of convert", `${module.exit_code}${module.exit_code || module.convert_seconds !== null ? "" : ", if the result verifies"}`),
      own.ops.length ? pair("ops", link(`#ops?${new URLSearchParams({ q: own.name })}`, `${plural(own.ops.length, "row")} of ${own.name}`)) : []),
    own.refused.length ? [el("h3", { class: "small" }, `${module.target} rejects`), listOf(own.refused.map((one) =>
      [`${count(one.count)} × ${one.label}${one.places.length ? `; at ${one.places.join(", ")}` : ""}. Remedy: `, el("b", {}, one.remedy || "none known")])),
      module.best_options.length ? [el("p", {}, own.all ? "All of it is accepted with:" : "Most of it is accepted with:"), el("pre", {}, commandFor([module.file], module.target, module.best_options))] : ""] : "",
    own.peaks.length ? [el("h3", { class: "small" }, "Memory over program order"),
      own.words.memory ? picture(text(own.words.memory)) : el("p", {}, "Nothing is live but arguments and results."),
      el("p", { class: "soft" }, WORDS.estimate), listOf(module.memory.map(loopsOf).filter(Boolean))] : "",
    module.notes.length ? [el("h3", { class: "small" }, "Notes"), listOf(module.notes)] : "",
    own.scatters.length ? [el("h3", { class: "small" }, "Scatters"), listOf(own.scatters.slice(0, 20).map((op) => [link(`#${op.id}`, `${op.record.number}`), ` ${op.told.writes}: ${op.told.rule}, ${op.told.bounds}`])),
      own.scatters.length > 20 ? el("p", { class: "soft" }, `and ${count(own.scatters.length - 20)} more`) : ""] : "");
}

/* "loops after: a.py:3 (2 times), a.py:9". */
function loopsOf(curve, at, curves) {
  const places = grouped(curve.loops, (loop) => loop.where).map((group) => group.key + (group.found.length > 1 ? ` (${group.found.length} times)` : ""));
  return places.length ? `loops${curves.length > 1 ? [" before", " after"][at] : ""}: ${places.join(", ")}` : "";
}

function picture(markup) {
  const holder = el("div");
  holder.innerHTML = markup;  // made by the tool, names in it are escaped
  return holder;
}

/* A graph at its own size, which scrolls where it is wider than the page; on paper it shrinks. */
function graph(markup) {
  const holder = picture(markup);
  holder.className = "graphs";
  holder.tabIndex = 0;
  return holder;
}

function opDetails(op) {
  if (op.kind !== "scatter") {
    return el("dl", {}, pair("module", link(`#${op.own.id}`, op.own.name)), pair("op", op.op), pair("why", op.why),
      op.one ? [pair("where", op.one.places.join(", ")), pair("remedy", op.one.remedy || "none known")] : pair("where", op.where));
  }
  const { record, told, own } = op;
  const evidence = own.module.evidence;
  const steps = Object.entries(record.evidence || {}).map(([name, numbers]) => el("li", {}, el("b", {}, name), `: ${factValue(record, name)}`,
    listOf(numbers.map((n) => text(own.words.evidence[n]) + (evidence[n].at ? ` at ${evidence[n].at}` : "")))));
  const others = Object.entries(REPORT.rejections[record.why_not] || {}).map(([rule, numbers]) => [rule, numbers.length, numbers.map((n) => text(WORDS.reasons[n])).join("; ")])
    .sort((a, b) => a[1] - b[1]);
  const [before, after] = own.words.code[op.place].map((n) => WORDS.blocks[n].map(text).join("\n"));
  const mlir = (title, code) => code ? [el("h3", { class: "small" }, title), el("pre", {}, code)] : "";
  return el("div", {},
    el("div", { class: "parts" },
      el("dl", {},
        pair("module", link(`#${own.id}`, own.name), ` @${record.function}`), pair("where", record.location, record.scope ? `, ${record.scope}` : ""),
        pair("source", told.source ? el("code", {}, told.source) : ""), pair("writes", told.writes),
        pair("shapes", `operand ${shape(record.operand_shape)}, indices ${shape(record.indices_shape)}, updates ${shape(record.updates_shape)}; ${record.dtype || ""}`),
        pair("kind", `${record.kind}: subset ${record.subset}, combiner ${record.combiner}`),
        pair("bounds", `${told.bounds} (under oob=${own.module.oob})`), pair("guard", op.guard + (told.guard ? `, for an index from: ${told.guard}` : "")),
        pair("unique", told.unique), pair("rule", told.rule), pair("why", told.why), pair("form", REPORT.rules[record.rule] || "")),
      told.picture ? picture(told.picture) : ""),
    steps.length ? folded(`Evidence of ${plural(steps.length, "fact")}`, el("ul", {}, steps)) : "",
    others.length ? folded(`${plural(others.length, "other rule")} for scatters, the nearest first`, listOf(others.map(([rule, , why]) => [el("b", {}, rule), `: ${why}`]))) : "",
    told.around ? folded("What computes its indices, and what reads it", graph(told.around), told.became ? [el("h3", { class: "small" }, "After lowering"), graph(told.became)] : "") : "",
    mlir("Before", before), mlir("After", after),
    record.rule && !after ? el("p", { class: "soft" }, "The ops that it becomes are not shown: it shares its line and scope with another op, or the report was made without texts.") : "");
}

function factValue(record, name) {
  const value = name in (record.facts || {}) ? record.facts[name] : record[name];
  return typeof value === "object" ? JSON.stringify(value) : String(value === undefined ? "" : value);
}

/* --- the two tables --- */

const time = (value) => value === null ? "" : seconds(value);
const moduleTable = new Listing({
  view: "modules", noun: "module", rows: modules, title: (own) => own.name, details: moduleDetails,
  labels: { state: "Accepted", cause: "Rejected", remedy: "Remedy", together: "Options together", guard: "Guards", loop: "Loops", kind: "Kind", rule: "Rule", op: "Op", folder: "Folder", target: "Target" },
  columns: [
    { name: "name", title: "module", key: (own) => own.name },
    { name: "state", title: "accepted", key: (own) => own.state, show: (own) => own.state === "accepted whole" ? "whole" : own.state === "unreadable" ? "not read" : "in part",
      tone: (own) => own.state === "accepted whole" ? "good" : "bad" },
    { name: "why", title: "rejected, or error", short: "rejected", long: true, key: (own) => own.why, show: (own) => own.why.length > 160 ? `${own.why.slice(0, 160)} ...` : own.why },
    { name: "ops", title: "ops", number: true, key: (own) => own.module.op_count, show: (own) => numbered(own.module.op_count) },
    { name: "scatters", title: "scatters", number: true, key: (own) => own.scatters.length, show: (own) => numbered(own.scatters.length) },
    { name: "guards", title: "guards", number: true, key: (own) => own.guards, show: (own) => numbered(own.guards) },
    { name: "loops", title: "loops", number: true, key: (own) => own.loops, show: (own) => numbered(own.loops) },
    { name: "memory", title: "memory, peak", short: "memory", number: true, key: (own) => own.peaks.length ? own.peaks.at(-1) : null, show: peaks },
    { name: "convert", title: "convert", number: true, key: (own) => own.module.convert_seconds, show: (own) => time(own.module.convert_seconds) },
    { name: "verify", title: "verify", number: true, key: (own) => own.module.verify_seconds, show: (own) => time(own.module.verify_seconds) },
  ].filter((column) => !["convert", "verify"].includes(column.name) || modules.some((own) => own.module[`${column.name}_seconds`] !== null)),
});
const opTable = new Listing({
  view: "ops", noun: "row", rows: ops, details: opDetails,
  title: (op) => `${op.own.name} ${op.label}`,
  labels: { op: "Op", outcome: "Outcome", kind: "Kind", rule: "Rule", cause: "Cause", guard: "Guard", from: "Guard for an index from", unique: "Unique", subset: "Subset", combiner: "Combiner", folder: "Folder", target: "Target" },
  columns: [
    { name: "name", title: "op", key: () => null },
    { name: "where", title: "where", key: (op) => op.cells[0], show: (op) => op.cells[0] },
    { name: "writes", title: "writes", key: (op) => op.cells[1], show: (op) => op.cells[1] },
    { name: "rule", title: "rule", key: (op) => op.cells[2], show: (op) => op.cells[2], tone: (op) => ["none", "rejected", "left"].includes(op.cells[2]) ? "bad" : "" },
    { name: "bounds", title: "bounds, or why", short: "bounds", long: true, key: (op) => op.cells[3], show: (op) => op.cells[3], tone: (op) => op.guard === "needed" ? "warn" : op.guard === "proved away" ? "good" : "" },
    { name: "unique", title: "unique", key: (op) => op.cells[4], show: (op) => op.cells[4] },
    { name: "cost", title: "about µs", number: true, key: (op) => op.cost, show: (op) => op.cost === null ? "" : count(Number(op.cost.toPrecision(3))) },
  ],
});
opTable.columns[0].key = (op) => opTable.title(op);

/* One row for each line of a source that a row of the ops names. */
const lines = new Map();
for (const op of ops) {
  for (const place of op.places) {
    const [, file, number] = place.match(/^(.*?):?(\d*)$/);
    if (!lines.has(place)) lines.set(place, { place, file, number: Number(number), ops: [], hay: "" });
    lines.get(place).ops.push(op);
  }
}
const sources = [...lines.values()].sort((a, b) => (a.file === b.file ? a.number - b.number : a.file < b.file ? -1 : 1));
sources.forEach((line, at) => {
  line.id = `l${at + 1}`;
  line.source = line.ops.map((op) => op.told ? op.told.source : "").find(Boolean) || "";
  line.modules = new Set(line.ops.map((op) => op.own)).size;
  line.what = grouped(line.ops, (op) => `${op.op.replace("stablehlo.", "")}: ${op.facets.rule || op.facets.outcome}`).map((group) => group.key + (group.found.length > 1 ? ` (${count(group.found.length)})` : "")).join(", ");
  line.facets = { file: line.file, op: [...new Set(line.ops.map((op) => op.op))], outcome: [...new Set(line.ops.map((op) => op.facets.outcome))] };
  line.hay = `${line.place} ${line.source} ${line.what}`.toLowerCase();
});
const sourceTable = new Listing({
  view: "sources", noun: "line", rows: sources, title: (line) => line.place,
  details: (line) => listOf(line.ops.map((op) => [link(`#${op.id}`, opTable.title(op)), ` ${op.cells.slice(1, 4).filter(Boolean).join("; ")}`])),
  labels: { file: "File", op: "Op", outcome: "Outcome" },
  columns: [
    { name: "name", title: "line", key: (line) => line.file },
    { name: "source", title: "source", long: true, key: (line) => line.source, show: (line) => line.source ? el("code", {}, line.source) : "" },
    { name: "what", title: "ops, and what becomes of them", short: "ops", long: true, key: (line) => line.what, show: (line) => line.what },
    { name: "modules", title: "modules", number: true, key: (line) => line.modules, show: (line) => count(line.modules) },
    { name: "rows", title: "rows", number: true, key: (line) => line.ops.length, show: (line) => count(line.ops.length) },
  ],
});

/* --- the overview --- */

function overview() {
  const body = byId("view-overview").querySelector(".body");
  const total = REPORT.totals;
  const targets = [...new Set(modules.map((own) => own.module.target))].join(", ");
  const readable = modules.filter((own) => !own.module.error);
  const refusing = readable.filter((own) => own.refused.length);
  const measured = readable.filter((own) => own.module.convert_seconds !== null);
  const card = (href, value, told) => el("a", { class: "card", href }, el("b", {}, value), el("span", {}, told));
  body.append(el("div", { class: "cards" },
    card("#modules", count(total.modules), "modules"),
    card(asked("modules", { state: "accepted whole" }), count(readable.length - refusing.length), `that ${targets} accepts whole`),
    card(asked("modules", { state: "rejected in part" }), count(refusing.length), `of which ${targets} rejects something`),
    total.unreadable ? card(asked("modules", { state: "unreadable" }), count(total.unreadable), "could not be read or converted") : "",
    card(asked("ops", { op: "stablehlo.scatter" }), count(total.scatters), total.scatters_left === null ? "scatters" : `scatters, ${count(total.scatters_left)} left`),
    card(asked("ops", { guard: "needed" }), count(total.guards_needed), `need a guard; proved without: ${count(total.guards_proved_away)}`),
    card(asked("ops", { rule: "while" }), count(total.looped), "scatters in a loop")));
  refusals(body, targets, readable, refusing);
  classes(body);
  const guards = grouped(ops.filter((op) => op.guard === "needed"), (op) => op.told.guard);
  body.append(el("h3", {}, "Guards"));
  body.append(guards.length ? tableOf(["an index that comes from", "modules", "scatters"], guards.map((group) => [
    link(asked("ops", { guard: "needed", from: group.key }), group.key), count(group.modules), count(group.found.length)]), [1, 2]) : el("p", {}, "None is needed."));
  const loops = grouped(ops.filter((op) => op.facets.rule === "while"), (op) => `${op.record.subset}, ${op.record.combiner}`);
  body.append(el("h3", {}, "Left in loops"));
  body.append(loops.length ? tableOf(["subset, combiner", "modules", "scatters"], loops.map((group) => [
    link(asked("ops", { rule: "while", subset: group.found[0].record.subset, combiner: group.found[0].record.combiner }), group.key), count(group.modules), count(group.found.length)]), [1, 2])
    : el("p", {}, "No scatter is lowered to a loop."));
  const left = grouped(ops.filter((op) => op.facets.outcome === "no rule" || op.facets.outcome === "left"), (op) => `${op.op}: ${op.facets.cause}`);
  if (left.length) {
    body.append(el("h3", {}, "No rule"), tableOf(["op and cause", "modules", "rows"], left.map((group) => [
      link(asked("ops", { op: group.found[0].op, cause: group.found[0].facets.cause }), group.key), count(group.modules), count(group.found.length)]), [1, 2]));
  }
  comparison(body);
  slowest(body, measured);
  largest(body, readable);
  folders(body);
}

/* Scatters by subset and combiner: how many of each class, and how many of them have no rule. */
function classes(body) {
  const scatters = ops.filter((op) => op.record);
  if (!scatters.length) return;
  const names = (key) => [...new Set(scatters.map((op) => op.record[key]))].sort();
  const combiners = names("combiner");
  const cell = (found, query) => !found.length ? "" : [link(asked("ops", query), count(found.length)),
    found.some((op) => op.facets.outcome === "no rule") ? ` (${count(found.filter((op) => op.facets.outcome === "no rule").length)} without a rule)` : ""];
  body.append(el("h3", {}, "Classes of scatters"), tableOf(["subset", ...combiners, "all"], names("subset").map((subset) => [
    link(asked("ops", { subset }), subset),
    ...combiners.map((combiner) => cell(scatters.filter((op) => op.record.subset === subset && op.record.combiner === combiner), { subset, combiner })),
    count(scatters.filter((op) => op.record.subset === subset).length)]), [...combiners.map((_, at) => at + 1), combiners.length + 1]));
}

function refusals(body, targets, readable, refusing) {
  body.append(el("h3", {}, `What ${targets} rejects, and the remedy`));
  if (!refusing.length) { body.append(el("p", {}, "Nothing.")); return; }
  const all = refusing.flatMap((own) => own.refused.map((one) => ({ own, ...one })));
  const causes = grouped(all, (one) => one.label);
  body.append(tableOf(["op and reason", "modules", "ops", "remedies, modules"], causes.map((group) => [
    link(asked("modules", { cause: group.key }), group.key), count(group.modules), count(group.found.reduce((sum, one) => sum + one.count, 0)),
    grouped(group.found, (one) => one.remedy || "none known").map((one) => `${one.key} (${count(one.modules)})`).join(", ")]), [1, 2]));
  const remedies = grouped(all.filter((one) => one.remedy), (one) => one.remedy);
  const cured = (remedy) => refusing.filter((own) => own.refused.every((one) => one.remedy === remedy)).length;
  if (remedies.length) {
    body.append(el("h3", {}, "Remedies"), tableOf(["option", "helps in modules", "frees wholly"], remedies.map((group) => [
      link(asked("modules", { remedy: group.key }), group.key), count(group.modules), count(cured(group.key))]), [1, 2]));
  }
  const helped = grouped(refusing.filter((own) => own.best).map((own) => ({ own })), (one) => `${one.own.module.target} ${one.own.best}`);
  if (helped.length) {
    body.append(el("h3", {}, "Options that help together, found by trying them"), tableOf(["options", "modules", "accepted whole", "command"], helped.map((group) => {
      const files = group.found.map((one) => one.own.module.file), [{ own }] = group.found;
      const some = files.length > SHOWN ? [...files.slice(0, SHOWN), "..."] : files;
      return [link(asked("modules", { together: own.best }), own.best), count(files.length), count(group.found.filter((one) => one.own.all).length),
        [el("code", {}, commandFor(some, own.module.target, own.module.best_options).replace("'...'", "...")), files.length > SHOWN ? copyOf(commandFor(files, own.module.target, own.module.best_options)) : ""]];
    }), [1, 2]));
  }
}

const SHOWN = 3;  // modules that a command names on the page

/* A button that copies; where the browser does not let it, as of a page that came by http, it shows what to copy. */
function copyOf(command) {
  return el("button", { type: "button", onclick: async ({ target }) => {
    try {
      await navigator.clipboard.writeText(command);
      target.textContent = "Copied";
    } catch { target.replaceWith(el("pre", {}, command)); }
  } }, "Copy the whole command");
}

function slowest(body, measured) {
  body.append(el("h3", {}, "Time"));
  const sum = (name) => measured.reduce((total, own) => total + (own.module[name] || 0), 0);
  if (measured.length) {
    const most = [...measured].sort((a, b) => b.module.convert_seconds - a.module.convert_seconds).slice(0, 5);
    body.append(el("p", {}, `Converting took ${seconds(sum("convert_seconds"))}, verifying ${measured.some((own) => own.module.verify_seconds !== null) ? seconds(sum("verify_seconds")) : "was not measured"}. The slowest:`),
      tableOf(["module", "convert", "verify"], most.map((own) => [link(`#${own.id}`, own.name), time(own.module.convert_seconds), time(own.module.verify_seconds)]), [1, 2]));
  } else body.append(el("p", {}, "The modules were only classified, so no time was measured."));
  const dear = ops.filter((op) => op.cost !== null).sort((a, b) => b.cost - a.cost).slice(0, 5);
  if (dear.length) {
    body.append(el("p", {}, "The most expensive forms, by the target's table of costs (an estimate, not a measurement):"),
      tableOf(["op", "writes", "rule", "about µs"], dear.map((op) => [link(`#${op.id}`, opTable.title(op)), op.told.writes, op.told.rule, count(Number(op.cost.toPrecision(3)))]), [3]),
      el("p", {}, link("#ops?sort=-cost", "All, the most expensive first")));
  }
}

function largest(body, readable) {
  body.append(el("h3", {}, "Memory"));
  const known = readable.filter((own) => own.peaks.length);
  if (!known.length) { body.append(el("p", {}, "Not measured.")); return; }
  const most = [...known].sort((a, b) => Math.max(...b.peaks) - Math.max(...a.peaks)).slice(0, 5);
  const grown = known.filter((own) => own.peaks.length > 1 && own.peaks[1] > own.peaks[0]).length;
  body.append(el("p", {}, `${WORDS.estimate} ${grown ? `The peak grows in ${plural(grown, "module")}. ` : ""}The largest:`),
    tableOf(["module", "as given", "after lowering"], most.map((own) => [link(`#${own.id}`, own.name), bytes(own.peaks[0]), own.peaks.length > 1 ? bytes(own.peaks[1]) : "not lowered"]), [1, 2]),
    el("p", {}, link("#modules?sort=-memory", "All, the largest first")));
}

function folders(body) {
  if (REPORT.groups.length < 2) return;
  const most = Math.max(...REPORT.groups.map((group) => group.totals.scatters), 1);
  const many = (group) => modules.filter((own) => own.module.group === group.group && own.state === "rejected in part").length;
  body.append(el("h3", {}, "Folders"), tableOf(["folder", "modules", "rejected in part", "scatters", "guards", "in the loop"], REPORT.groups.map((group) => [
    link(asked("modules", { folder: group.group }), group.group), count(group.totals.modules), count(many(group)),
    [el("span", { class: "bar", style: `width:${(6 * group.totals.scatters / most).toFixed(2)}rem` }), count(group.totals.scatters)],
    count(group.totals.guards_needed), count(group.totals.looped)]), [1, 2, 3, 4, 5]));
}

/* --- an earlier report to compare with: its JSON, or the page that holds it --- */

const SLOWER = 1.25;  // less than that is noise
const LEAST = 0.05;   // seconds

function pace(was, now, least) {
  if (was === null || now === null || was === undefined) return "";
  return now > was * SLOWER && now - was >= least ? "slower" : was > now * SLOWER && was - now >= least ? "faster" : "";
}

function compare(content, name) {
  const isPage = content.trimStart().startsWith("<");
  const held = isPage ? new DOMParser().parseFromString(content, "text/html").getElementById("report").textContent : content;
  const earlier = JSON.parse(held);
  if (earlier.version !== REPORT.version) throw new Error(`its version is ${earlier.version}, this one's is ${REPORT.version}`);
  const before = new Map(shortNames(earlier.modules.map((module) => module.file)).map((file, at) => [file, earlier.modules[at]]));
  for (const own of modules) {
    const was = before.get(own.name);
    own.was = was ? { seconds: was.convert_seconds, refused: was.refused.reduce((sum, one) => sum + one.count, 0) } : null;
    const refused = own.refused.reduce((sum, one) => sum + one.count, 0);
    own.facets.change = !was ? ["new"] : [
      pace(was.convert_seconds, own.module.convert_seconds, LEAST).replace(/r$/, "r to convert"),
      refused > own.was.refused ? "more rejected" : refused < own.was.refused ? "less rejected" : "",
    ].filter(Boolean);
    const byNumber = new Map(was ? was.records.map((record) => [record.number, record]) : []);
    for (const op of own.scatters) {
      const other = byNumber.has(op.record.number) ? inFull(byNumber.get(op.record.number), byNumber) : null;
      const cost = other && costOf(other, was.evidence);
      op.was = other && { rule: other.rule ? other.rule.replace("scatter_to_", "") : "none", cost };
      op.facets.change = !other ? ["new"] : [pace(cost, op.cost, 0), (other.rule || "") !== (op.record.rule || "") ? "other rule" : ""].filter(Boolean);
    }
    const found = own.scatters.flatMap((op) => op.facets.change);
    own.facets.change.push(...new Set(found.map((change) => `a scatter: ${change}`)));
  }
  for (const [table, column] of [[moduleTable, { name: "was", title: "was", key: (own) => own.was ? own.was.seconds : null, number: true,
    show: (own) => !own.was ? "new" : own.was.seconds === null ? "" : time(own.was.seconds) }],
  [opTable, { name: "was", title: "was", key: (op) => op.was ? op.was.cost : null, show: (op) => !op.was ? "" : `${op.was.rule}${op.was.cost === null ? "" : `, ${count(Number(op.was.cost.toPrecision(3)))} µs`}` }]]) {
    table.labels = { change: "Since the earlier report", ...table.labels };
    table.columns = [...table.columns.filter((one) => one.name !== "was"), column];
    table.body.replaceChildren();
    table.build();
    table.update();
  }
  const many = (rows, change) => rows.filter((row) => [row.facets.change].flat().includes(change)).length;
  const lines = [["modules", modules, "slower to convert"], ["modules", modules, "more rejected"], ["modules", modules, "less rejected"], ["modules", modules, "new"],
    ["ops", ops, "slower"], ["ops", ops, "faster"], ["ops", ops, "other rule"]];
  byId("compared").replaceChildren(el("p", {}, `Compared with ${name}; of ops by the estimate of the table of costs:`),
    listOf(lines.map(([view, rows, change]) => link(asked(view, { change }), `${plural(many(rows, change), view === "ops" ? "scatter" : "module")}: ${change}`))));
}

function comparison(body) {
  const told = el("div", { id: "compared", role: "status" });
  const input = el("input", { type: "file", accept: ".json,.html", onchange: async () => {
    const [file] = input.files;
    if (!file) return;
    try { compare(await file.text(), file.name); } catch (error) { told.replaceChildren(el("p", { class: "bad" }, `${file.name} is no report to compare with: ${error.message}`)); }
  } });
  body.append(el("div", { id: "earlier" }, el("h3", {}, "Since an earlier report"), el("label", {}, "Its JSON, or its page: ", input), told));
}

if (WORDS.open.length) for (const op of ops) if (op.record && WORDS.open.includes(op.record.number)) opTable.open.add(op.id);
