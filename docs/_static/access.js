/* What the theme leaves out for those who do not see the page, or use no mouse: the level of captions, names of the two
   sidebars, what scrolls by the keyboard, heads of tables that say nothing, lists of parameters that are no definitions. */
addEventListener("DOMContentLoaded", () => {
  const each = (selector, change) => document.querySelectorAll(selector).forEach(change);
  each(".caption[role=heading]", (one) => one.setAttribute("aria-level", "2"));
  each("aside.sidebar-drawer", (one) => one.setAttribute("aria-label", "Site"));
  each("aside.toc-drawer", (one) => one.setAttribute("aria-label", "On this page"));
  each("pre, .table-wrapper", (one) => { if (one.scrollWidth > one.clientWidth) one.tabIndex = 0; });
  each("th", (one) => { if (!one.textContent.trim()) become(one, "td"); });
  each("dt > dl", (one) => {
    for (const part of [...one.children]) become(part, "div").style.marginLeft = "2rem";
    become(one, "div");
  });
});

/* Puts an element of another tag in the place of one, with its class and what it holds. */
function become(one, tag) {
  const other = document.createElement(tag);
  other.className = one.className;
  other.append(...one.childNodes);
  one.replaceWith(other);
  return other;
}
