// Elements are made by h, and text goes in as text alone. A page that shows live data makes
// its elements anew at each look; morph changes those on the screen to match, so that
// focus, selection and scrolling stay.

const SVG = new Set(["svg", "rect", "path", "line", "text", "g", "title", "circle"]);

/** h makes an element: attributes, on… handlers, and children: elements, texts, lists. */
export function h(tag, attributes, ...children) {
  const el = SVG.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) listen(el, name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : String(value));
  }
  add(el, children);
  return el;
}

// unsafe is what the command line replaces too: characters that are no text, or turn the
// direction of what follows.
const unsafe = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function add(el, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(el, child);
    else if (child !== undefined && child !== null && child !== false) el.append(typeof child === "string" ? child.replace(unsafe, "·") : child);
  }
}

function listen(el, type, handler) {
  if (!el.heard) el.heard = {};
  if (!el.heard[type]) el.addEventListener(type, (event) => el.heard[type]?.(event));
  el.heard[type] = handler;
}

/** show makes the children of an element match a list of new ones. */
export function show(parent, ...children) {
  const box = document.createElement("div");
  add(box, children);
  match(parent, [...box.childNodes]);
}

/**
 * lazy is an element whose children are made only if its mark is another than that of the
 * element on the screen.
 */
export function lazy(el, mark, children) {
  el.mark = mark;
  el.fill = () => {
    add(el, children());
    delete el.fill;
  };
  return el;
}

// fill makes the children of all lazy elements in what is new on the screen.
function fill(el) {
  el.fill?.();
  for (const child of el.children ?? []) fill(child);
}

function match(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.childNodes) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let at = parent.firstChild;
  for (const want of wanted) {
    const key = want.dataset?.key;
    let have = key ? keyed.get(key) : at;
    if (have && have.nodeName === want.nodeName && (have.dataset?.key ?? "") === (key ?? "")) {
      if (have !== at) parent.insertBefore(have, at);
      else at = at.nextSibling;
      morph(have, want);
    } else {
      fill(want);
      parent.insertBefore(want, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// What has data-keep is the page's own after it was made: a plot, a log, a form.
function morph(have, want) {
  if (have.nodeType === Node.TEXT_NODE) {
    if (have.data !== want.data) have.data = want.data;
    return;
  }
  if (want.fill) {
    if (have.mark === want.mark) return;
    want.fill();
    have.mark = want.mark;
  }
  if (have.dataset?.keep !== undefined && have.dataset.keep === want.dataset.keep) return;
  for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
  for (const { name } of [...have.attributes]) if (!want.hasAttribute(name) && !(name === "open" && have.nodeName === "DETAILS")) have.removeAttribute(name);
  for (const type of Object.keys(want.heard ?? {})) listen(have, type, want.heard[type]);
  for (const type of Object.keys(have.heard ?? {})) if (!want.heard?.[type]) delete have.heard[type];
  match(have, [...want.childNodes]);
  if (have.nodeName === "INPUT" && have !== document.activeElement) have.checked = want.checked;
}
