/* The named ops of modules, and what was almost one: rows, details and overview. */

const OP_VIEW = "ops";
const names = shortNames(REPORT.modules.map((module) => module.file));
const modules = [];
const ops = [];

const sum = (rows, valueOf) => rows.reduce((total, row) => total + valueOf(row), 0);
const share = (part, whole) => !whole ? "" : part && part < whole / 1000 ? "< 0.1 %" : `${Number((100 * part / whole).toPrecision(2))} %`;
const told = (value) => Array.isArray(value) ? `[${value.join(", ")}]` : typeof value === "number" ? String(Number(value.toPrecision(9))) : String(value);
const listed = (pairs, sign) => Object.entries(pairs).map(([name, value]) => `${name}${sign}${told(value)}`).join(", ");

/* How many rows there are of each name, the most frequent first: "3 rms_norm, 1 attention". */
function tally(rows) {
  const counts = new Map();
  for (const row of rows) counts.set(row.op, (counts.get(row.op) || 0) + row.times);
  return [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name, many]) => `${count(many)} ${name}`).join(", ");
}

REPORT.modules.forEach((module, at) => {
  const own = { id: `m${at + 1}`, module, name: names[at] };
  const about = { module: own.name, folder: module.group };
  own.named = module.named.map((record, n) => ({
    id: `${own.id}-n${n + 1}`, own, op: record.name, record, times: record.times, label: record.name,
    where: placeOf(record.place, module.file), why: "",
    facets: { op: record.name, outcome: "named", holds: record.inner, attributes: listed(record.attributes, " = "), ...about },
    takes: listed(record.inputs, " "),
  }));
  own.almost = module.near_misses.map((miss, n) => ({
    id: `${own.id}-a${n + 1}`, own, op: miss.name, record: null, times: 0, label: `almost ${miss.name}`,
    where: placeOf(miss.place, module.file), why: text(WORDS.modules[at][n]), takes: "",
    facets: { op: miss.name, outcome: "almost", lacked: text(WORDS.modules[at][n]), ...about },
  }));
  own.covered = sum(own.named, (op) => op.record.ops);
  own.flops = sum(own.named, (op) => op.record.flops * op.times);
  own.facets = {
    op: [...new Set(own.named.map((op) => op.op))], almost: [...new Set(own.almost.map((op) => op.op))],
    state: module.error ? "unreadable" : own.named.length ? "has named ops" : "has none", folder: module.group,
  };
  own.told = module.error ? module.error.split("\n")[0] : tally(own.named);
  own.hay = `${module.file} ${own.told} ${own.facets.almost.join(" ")}`.toLowerCase();
  modules.push(own);
  ops.push(...own.named, ...own.almost);
});
for (const op of ops) op.hay = `${op.own.name} ${op.label} ${op.where} ${op.takes} ${op.facets.attributes || ""} ${op.why}`.toLowerCase();

/* --- what stands below a row --- */

const rowsOf = (query) => `#${OP_VIEW}?${new URLSearchParams(query)}`;

function moduleDetails(own) {
  const { module } = own;
  const most = [...own.named, ...own.almost].slice(0, 20);
  return el("div", {},
    module.error ? el("pre", { class: "bad" }, module.error) : "",
    el("dl", {}, pair("file", module.file), pair("ops", module.ops ? `${count(module.ops)}, ${count(own.covered)} of them in named ops (${share(own.covered, module.ops)})` : ""),
      pair("FLOPs", module.flops ? `${count(module.flops)}, ${count(own.flops)} of them in named ops (${share(own.flops, module.flops)}); a loop is counted as one trip` : ""),
      most.length ? pair("rows", link(rowsOf({ module: own.name }), `${plural(own.named.length + own.almost.length, "row")} of ${own.name}`)) : []),
    listOf(most.map((op) => [link(`#${op.id}`, op.label), ` at ${op.where}${op.why ? `: ${op.why}` : ""}`])));
}

function opDetails(op) {
  const { record, own } = op;
  const module = pair("module", link(`#${own.id}`, own.name), record ? ` @${record.function}` : "");
  if (!record) return el("dl", {}, module, pair("where", op.where), pair("what it lacked", op.why));
  return el("dl", {}, module, pair("where", op.where), pair("times", count(op.times)),
    pair("inputs", listOf(Object.entries(record.inputs).map(([role, type]) => [el("b", {}, role), ` ${type}`]))),
    pair("attributes", listed(record.attributes, " = ")),
    pair("covers", `${plural(record.ops, "op")}, ${count(record.flops)} FLOPs each time${own.module.flops ? `: ${share(record.flops * op.times, own.module.flops)} of the module's` : ""}`),
    pair("holds", record.inner.join(", ")),
    pair("used outside", record.further ? `${plural(record.further, "value")} in between` : ""));
}

/* --- the two tables --- */

const moduleTable = new Listing({
  view: "modules", noun: "module", rows: modules, title: (own) => own.name, details: moduleDetails,
  labels: { op: "Named op", almost: "Almost", state: "State", folder: "Folder" },
  columns: [
    { name: "name", title: "module", key: (own) => own.name },
    { name: "told", title: "named ops, or error", short: "named ops", long: true, key: (own) => own.told, show: (own) => own.told, tone: (own) => own.module.error ? "bad" : "" },
    { name: "ops", title: "ops", number: true, key: (own) => own.module.ops, show: (own) => numbered(own.module.ops) },
    { name: "covered", title: "in named ops", number: true, key: (own) => own.covered / (own.module.ops || 1), show: (own) => share(own.covered, own.module.ops) },
    { name: "flops", title: "FLOPs", number: true, key: (own) => own.module.flops, show: (own) => numbered(own.module.flops) },
    { name: "flopsCovered", title: "in named ops", number: true, key: (own) => own.flops / (own.module.flops || 1), show: (own) => share(own.flops, own.module.flops) },
    { name: "almost", title: "almost", number: true, key: (own) => own.almost.length, show: (own) => numbered(own.almost.length) },
  ],
});
const opTable = new Listing({
  view: OP_VIEW, noun: "row", rows: ops, details: opDetails, title: (op) => `${op.own.name} ${op.label}`,
  labels: { op: "Named op", outcome: "Outcome", lacked: "Lacked", holds: "Holds", attributes: "Attributes", module: "Module", folder: "Folder" },
  columns: [
    { name: "name", title: "named op", key: (op) => `${op.own.name} ${op.label}` },
    { name: "where", title: "where", key: (op) => op.where, show: (op) => op.where },
    { name: "takes", title: "inputs, or what it lacked", short: "inputs", long: true, key: (op) => op.why || op.takes, show: (op) => op.why || op.takes, tone: (op) => op.why ? "warn" : "" },
    { name: "attributes", title: "attributes", long: true, key: (op) => op.facets.attributes || "", show: (op) => op.facets.attributes || "" },
    { name: "times", title: "times", number: true, key: (op) => op.times, show: (op) => numbered(op.times) },
    { name: "ops", title: "ops", number: true, key: (op) => op.record ? op.record.ops : null, show: (op) => op.record ? count(op.record.ops) : "" },
    { name: "flops", title: "FLOPs each", number: true, key: (op) => op.record ? op.record.flops : null, show: (op) => op.record ? count(op.record.flops) : "" },
  ],
});

/* --- the overview --- */

function overview() {
  const body = byId("view-overview").querySelector(".body");
  const card = (href, value, words) => el("a", { class: "card", href }, el("b", {}, value), el("span", {}, words));
  const named = ops.filter((op) => op.record);
  const almost = ops.filter((op) => !op.record);
  const all = (valueOf) => sum(modules, valueOf);
  const unreadable = modules.filter((own) => own.module.error).length;
  body.append(el("div", { class: "cards" },
    card("#modules", count(modules.length), "modules"),
    card(rowsOf({ outcome: "named" }), count(sum(named, (op) => op.times)), "named ops"),
    card(asked("modules", { sort: "-covered" }), share(all((own) => own.covered), all((own) => own.module.ops)) || "0 %", "of the ops are in them"),
    card(asked("modules", { sort: "-flopsCovered" }), share(all((own) => own.flops), all((own) => own.module.flops)) || "0 %", "of the FLOPs are in them"),
    card(rowsOf({ outcome: "almost" }), count(almost.length), "were almost one"),
    unreadable ? card(asked("modules", { state: "unreadable" }), count(unreadable), "could not be read") : ""));
  const total = all((own) => own.module.flops);
  body.append(el("h3", {}, "Which, and what they cover"));
  body.append(named.length ? tableOf(["named op", "modules", "number", "ops", "FLOPs", "of all FLOPs"], grouped(named, (op) => op.op).map((group) => ({ ...group, flops: sum(group.found, (op) => op.record.flops * op.times) })).sort((a, b) => b.flops - a.flops).map((group) => [link(rowsOf({ op: group.key, outcome: "named" }), group.key), count(group.modules), count(sum(group.found, (op) => op.times)),
      count(sum(group.found, (op) => op.record.ops)), count(group.flops), share(group.flops, total)]), [1, 2, 3, 4, 5]) : el("p", {}, "There is none."));
  body.append(el("h3", {}, "Almost one, and what it lacked"));
  body.append(almost.length ? tableOf(["named op and what it lacked", "modules", "number"], grouped(almost, (op) => `${op.op}: ${op.why}`).map((group) => [
    link(rowsOf({ op: group.found[0].op, lacked: group.found[0].why }), group.key), count(group.modules), count(group.found.length)]), [1, 2])
    : el("p", {}, "Nothing was."));
}
