"use strict";
/* Shows the JSON report that the page holds: an overview, a table of modules and one of ops. Texts of the report are
   only ever set as text; of what comes from the tool itself, drawings are the only markup. */

const REPORT = JSON.parse(document.getElementById("report").textContent);
const WORDS = JSON.parse(document.getElementById("words").textContent);
const CHUNK = 60;          // rows that are drawn at once
const BEFORE = 10;         // of them before a row that is gone to
const text = (number) => WORDS.texts[number || 0];
const count = (value) => value.toLocaleString("en-US");
const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const byId = (id) => document.getElementById(id);

/* An element with attributes, properties that begin with "on", and children; a string is text. */
function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

/* --- names and places --- */

/* Names below the folder that all modules have in common. */
function shortNames(files) {
  const parts = files.map((file) => file.split("/"));
  let shared = 0;
  while (parts.length > 1 && parts.every((own) => own.length > shared + 1 && own[shared] === parts[0][shared])) shared += 1;
  return parts.map((own) => own.slice(parts.length === 1 ? -1 : shared).join("/"));
}

const placeOf = (place, file) => place.replace(`${file.split("/").pop()}:`, "line ");

/* --- tables --- */

class Listing {
  /* A table of rows with a search, facets and an order; rows are drawn as far as one has scrolled. */
  constructor(how) {
    Object.assign(this, how);
    this.state = { q: "", facets: {}, sort: "", down: false };
    this.open = new Set();
    this.body = byId(`view-${this.view}`).querySelector(".body");
    this.body.classList.add("lists");
    this.build();
  }

  build() {
    this.search = el("input", { type: "search", id: `${this.view}-q`, placeholder: "words, all of which occur",
      oninput: () => { this.state.q = this.search.value; this.changed(); } });
    this.selects = {};
    const facets = Object.entries(this.labels).map(([name, label]) => {
      const select = el("select", { name, onchange: () => { this.state.facets[name] = select.value; this.changed(); } });
      this.selects[name] = select;
      return el("label", {}, label, select);
    });
    this.order = el("select", { onchange: () => { [this.state.sort, this.state.down] = [this.order.value, false]; this.changed(); } },
      el("option", { value: "" }, "as given"), this.columns.map((column) => el("option", { value: column.name }, column.title)));
    this.status = el("span", { class: "status", role: "status" });
    this.all = el("button", { type: "button", onclick: () => this.toggleAll() }, "Expand all");
    const reset = el("button", { type: "button", onclick: () => { this.reset(); this.changed(); } }, "Clear");
    const controls = el("div", { class: "controls", role: "search", "aria-label": `${this.view}: search and filters` },
      el("label", {}, "Search", this.search), el("label", { class: "narrow" }, "Order", this.order), this.all, reset, this.status,
      el("details", { class: "filters", open: !matchMedia("(max-width: 760px)").matches }, el("summary", {}, "Filters"), el("div", { class: "facets" }, facets)));
    this.heads = this.columns.map((column) => el("th", { scope: "col", class: column.number ? "num" : null, "aria-sort": "none" },
      el("button", { type: "button", onclick: () => this.sortBy(column.name) }, column.title)));
    this.rowsAt = el("tbody");
    this.more = el("div", { class: "more" }, el("button", { type: "button", onclick: () => this.draw(CHUNK) }, "More rows"));
    this.earlier = el("div", { class: "more" }, el("button", { type: "button", onclick: () => this.drawEarlier() }, "Earlier rows"));
    this.body.append(controls, this.earlier, el("table", {}, el("caption", { hidden: true }, this.view), el("thead", {}, el("tr", {}, this.heads)), this.rowsAt), this.more);
    if (this.watch) this.watch.disconnect();
    this.watch = new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) this.draw(CHUNK); }, { rootMargin: "600px" });
    this.watch.observe(this.more);
  }

  reset() { this.state = { q: "", facets: {}, sort: "", down: false }; }

  sortBy(name) {
    this.state.down = this.state.sort === name ? !this.state.down : Boolean(this.columns.find((column) => column.name === name).number);
    this.state.sort = name;
    this.changed();
  }

  /* Rows that match, and for each facet how many rows each value would leave: one pass, by the number of misses. */
  matching() {
    const wanted = Object.entries(this.state.facets).filter(([, value]) => value);
    const tokens = this.state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = Object.fromEntries(Object.keys(this.labels).map((name) => [name, new Map()]));
    const found = [];
    for (const row of this.rows) {
      if (!tokens.every((token) => row.hay.includes(token))) continue;
      const missed = wanted.filter(([name, value]) => ![row.facets[name]].flat().includes(value));
      if (!missed.length) found.push(row);
      if (missed.length > 1) continue;
      for (const name of missed.length ? [missed[0][0]] : Object.keys(this.labels)) {
        for (const value of new Set([row.facets[name]].flat())) if (value) counts[name].set(value, (counts[name].get(value) || 0) + 1);
      }
    }
    const column = this.columns.find((one) => one.name === this.state.sort);
    if (column) {
      const keyed = found.map((row, at) => [column.key(row), at, row]);
      const less = (a, b) => (a === b ? 0 : a === null || a === "" ? 1 : b === null || b === "" ? -1 : (a < b ? -1 : 1) * (this.state.down ? -1 : 1));
      keyed.sort((a, b) => less(a[0], b[0]) || a[1] - b[1]);
      return [keyed.map((one) => one[2]), counts];
    }
    return [found, counts];
  }

  changed() {
    this.update();
    history.replaceState(null, "", this.hash());
  }

  hash() {
    const query = new URLSearchParams();
    if (this.state.q) query.set("q", this.state.q);
    for (const [name, value] of Object.entries(this.state.facets)) if (value) query.set(name, value);
    if (this.state.sort) query.set("sort", (this.state.down ? "-" : "") + this.state.sort);
    return `#${this.view}${query.size ? `?${query}` : ""}`;
  }

  from(query) {
    this.reset();
    for (const [name, value] of query) {
      if (name === "q") this.state.q = value;
      else if (name === "sort") [this.state.sort, this.state.down] = [value.replace(/^-/, ""), value.startsWith("-")];
      else if (Object.hasOwn(this.labels, name)) this.state.facets[name] = value;
    }
    this.update();
  }

  update() {
    let counts;
    [this.found, counts] = this.matching();
    if (this.search.value !== this.state.q) this.search.value = this.state.q;
    this.order.value = this.state.sort;
    for (const [name, select] of Object.entries(this.selects)) this.fill(select, counts[name], this.state.facets[name] || "");
    this.columns.forEach((column, at) => this.heads[at].setAttribute("aria-sort",
      column.name !== this.state.sort ? "none" : this.state.down ? "descending" : "ascending"));
    this.redraw(0, CHUNK);
  }

  fill(select, counts, value) {
    if (value && !counts.has(value)) counts.set(value, 0);
    const options = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    select.replaceChildren(el("option", { value: "" }, "any"), ...options.map(([name, many]) => el("option", { value: name }, `${name} (${count(many)})`)));
    select.value = value;
    select.classList.toggle("set", Boolean(value));
    select.parentElement.hidden = counts.size < 2 && !value;
  }

  /* Draws so many rows anew, from one of those that were found. */
  redraw(first, many) {
    this.rowsAt.replaceChildren();
    this.first = this.drawn = first;
    this.draw(many);
  }

  drawEarlier() {
    const first = Math.max(this.first - CHUNK, 0);
    this.rowsAt.prepend(...this.found.slice(first, this.first).flatMap((row) => this.lines(row)));
    this.first = first;
    this.earlier.hidden = first === 0;
  }

  draw(many) {
    const rows = this.found.slice(this.drawn, this.drawn + many);
    this.rowsAt.append(...rows.flatMap((row) => this.lines(row)));
    this.drawn += rows.length;
    this.earlier.hidden = this.first === 0;
    this.more.hidden = this.drawn >= this.found.length;
    this.status.textContent = `${count(this.found.length)} of ${plural(this.rows.length, this.noun)}`;
    this.all.textContent = this.isOpen() ? "Close all" : "Expand all";
  }

  lines(row) {
    const isOpen = this.open.has(row.id);
    const button = el("button", { type: "button", class: "open", "aria-expanded": String(isOpen), onclick: () => this.toggle(row) }, this.title(row));
    const anchor = el("a", { class: "anchor", href: `#${row.id}`, "aria-label": `Link to ${this.title(row)}` }, "#");
    const cells = this.columns.map((column, at) => at === 0 ? el("td", {}, el("div", { class: "name" }, button, anchor))
      : el("td", { "data-title": column.short || column.title, class: [column.number ? "num" : "", column.long ? "long" : "", column.tone ? column.tone(row) : ""].join(" ").trim() || null }, column.show(row)));
    const line = el("tr", { class: "row", id: row.id }, cells);
    return isOpen ? [line, this.detail(row)] : [line];
  }

  detail(row) {
    return el("tr", { class: "detail" }, el("td", { colspan: this.columns.length }, this.details(row)));
  }

  toggle(row) {
    const line = byId(row.id);
    const isOpen = !this.open.has(row.id);
    this.open[isOpen ? "add" : "delete"](row.id);
    line.querySelector(".open").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) line.after(this.detail(row));
    else line.nextElementSibling.remove();
    this.all.textContent = this.isOpen() ? "Close all" : "Expand all";
  }

  isOpen() { return this.found.length > 0 && this.found.every((row) => this.open.has(row.id)); }

  toggleAll() {
    const close = this.isOpen();
    for (const row of this.found) this.open[close ? "delete" : "add"](row.id);
    this.redraw(this.first, Math.min(Math.max(this.drawn - this.first, CHUNK), 4 * CHUNK));
  }

  /* Opens a row and goes to it; filters that hide it are cleared. Of what stands before it a few rows are drawn. */
  goTo(row) {
    if (!this.found.includes(row)) { this.reset(); this.update(); }
    const at = this.found.indexOf(row);
    if (at < this.first || at >= this.drawn) this.redraw(Math.max(at - BEFORE, 0), CHUNK);
    if (!this.open.has(row.id)) this.toggle(row);
    for (const other of document.querySelectorAll("tr.here")) other.classList.remove("here");
    const line = byId(row.id);
    line.classList.add("here");
    line.scrollIntoView({ block: "start" });
    line.querySelector(".open").focus({ preventScroll: true });
  }
}

/* --- parts of what is shown --- */

const pair = (name, ...value) => value.flat().some((one) => one !== "" && one !== null && one !== undefined) ? [el("dt", {}, name), el("dd", {}, ...value)] : [];
const seconds = (value) => value === null ? "not measured" : `${value < 1 ? value.toFixed(2) : value.toFixed(1)} s`;
const folded = (title, ...inner) => el("details", {}, el("summary", {}, title), ...inner);
const listOf = (lines) => el("ul", {}, lines.map((line) => el("li", {}, line)));
const link = (href, ...inner) => el("a", { href }, ...inner);
const numbered = (value) => value ? count(value) : "";
const asked = (view, query) => `#${view}?${new URLSearchParams(query)}`;

function tableOf(heads, rows, numbers) {
  const kind = (at) => numbers.includes(at) ? "num" : null;
  return el("div", { class: "wide" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((head, at) => el("th", { scope: "col", class: kind(at) }, head)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, at) => el("td", { class: kind(at), "data-title": heads[at] }, cell)))))));
}

/* Groups by a key: for each the rows, those of most modules first. */
function grouped(rows, keyOf) {
  const groups = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  const many = (found) => new Set(found.map((row) => row.own)).size;
  return [...groups].map(([key, found]) => ({ key, found, modules: many(found) })).sort((a, b) => b.modules - a.modules || b.found.length - a.found.length);
}
