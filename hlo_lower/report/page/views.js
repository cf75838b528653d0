/* --- views, links, keys, print --- */

const views = ["overview", "modules", "ops"];
const tables = { modules: moduleTable, ops: opTable };

function show(view) {
  for (const other of views) byId(`view-${other}`).hidden = other !== view;
  for (const anchor of document.querySelectorAll("nav a")) {
    if (anchor.getAttribute("href") === `#${view}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
}

function route() {
  const [view, query] = location.hash.slice(1).split("?");
  const row = /^m\d+$/.test(view) ? modules.find((own) => own.id === view) : /^m\d+-/.test(view) ? ops.find((op) => op.id === view) : null;
  if (row) {
    const table = row.own ? "ops" : "modules";
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
    e: () => { if (current()) current().toggleAll(); },
  };
  if (event.key in keys) { event.preventDefault(); keys[event.key](); }
});

/* On paper: every row that the filters leave, unfolded. */
window.addEventListener("beforeprint", () => {
  for (const table of Object.values(tables)) {
    table.kept = new Set(table.open);
    if (!table.found) table.update();
    for (const row of table.found) table.open.add(row.id);
    table.redraw(0, table.found.length);
  }
  for (const details of document.querySelectorAll("details")) details.open = true;
});
window.addEventListener("afterprint", () => {
  for (const table of Object.values(tables)) { table.open = table.kept; table.update(); }
});

overview();
if (modules.length === 1) moduleTable.open.add(modules[0].id);
window.addEventListener("hashchange", route);
route();
