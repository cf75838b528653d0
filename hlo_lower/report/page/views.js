/* --- views, links, keys, print --- */

const tables = { modules: moduleTable, ops: opTable, ...(typeof sourceTable === "undefined" ? {} : { sources: sourceTable }) };
const views = ["overview", ...Object.keys(tables)];

function show(view) {
  for (const other of views) byId(`view-${other}`).hidden = other !== view;
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.getAttribute("href") === `#${view}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

function route() {
  const [view, query] = location.hash.slice(1).split("?");
  const table = /^m\d+$/.test(view) ? "modules" : /^m\d+-/.test(view) ? "ops" : /^l\d+$/.test(view) ? "sources" : "";
  const row = table in tables ? tables[table].rows.find((one) => one.id === view) : null;
  if (row) {
    show(table);
    if (!tables[table].found) tables[table].update();
    tables[table].goTo(row);
  } else if (view in tables) {
    show(view);
    tables[view].from(new URLSearchParams(query || ""));
    window.scrollTo(0, 0);
  } else if (view !== "main") {
    show("overview");
    window.scrollTo(0, 0);
  }
}

const current = () => tables[views.find((view) => !byId(`view-${view}`).hidden)];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
  const keys = {
    "/": () => { if (!current()) location.hash = "#ops"; (current() || opTable).search.focus(); },
    o: () => { location.hash = "#overview"; }, m: () => { location.hash = "#modules"; }, s: () => { location.hash = "#ops"; },
    l: () => { if (tables.sources) location.hash = "#sources"; },
    e: () => { if (current()) current().toggleAll(); },
  };
  if (event.key in keys) { event.preventDefault(); keys[event.key](); }
});

/* On paper: the view that is shown, with all rows that its filters leave, open ones open; of everything all, unfolded. */
const printed = byId("printed");
let isAll = false;
let unfolded = [];  // what only the print of everything shows

function inWords() {
  const table = current();
  if (isAll || !table) return isAll ? "Everything, unfolded." : "Overview.";
  const { q, facets, sort, down } = table.state;
  const chosen = Object.entries(facets).filter(([, value]) => value).map(([name, value]) => `${table.labels[name]}: ${value}`);
  const column = table.columns.find((one) => one.name === sort);
  return [table.status.textContent, q ? `search: ${q}` : "", ...chosen, column ? `by ${column.title}${down ? ", descending" : ""}` : ""].filter(Boolean).join("; ");
}

window.addEventListener("beforeprint", () => {
  printed.textContent = inWords();
  for (const table of isAll ? Object.values(tables) : [current()].filter(Boolean)) {
    table.kept = [new Set(table.open), table.state];
    if (isAll) table.reset();
    if (isAll || !table.found) table.update();
    if (isAll) for (const row of table.found) table.open.add(row.id);
    table.redraw(0, table.found.length);
  }
  document.body.classList.toggle("all", isAll);
  unfolded = isAll ? [...document.querySelectorAll("details:not([open])")] : [];
  for (const details of unfolded) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const table of Object.values(tables)) if (table.kept) { [table.open, table.state] = table.kept; table.kept = null; table.update(); }
  for (const details of unfolded) details.open = false;
  document.body.classList.remove("all");
  isAll = false;
});
byId("print-all").addEventListener("click", () => { isAll = true; window.print(); });

/* The running head of a printed page: what it is a report of. */
document.head.append(el("style", {}, `@page { @top-left { content: ${JSON.stringify(document.title).replace(/</g, "\\3c ")}; } }`));

overview();
if (modules.length === 1) moduleTable.open.add(modules[0].id);
window.addEventListener("hashchange", route);
route();
