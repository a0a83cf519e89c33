// Parts that pages share.
import { h, lazy } from "./dom.js";
import { credits, time } from "./format.js";

/** bar draws a share as a bar with a name for screen readers. */
export function bar(share, text, kind = "") {
  const wide = Math.max(0, Math.min(100, 100 * share));
  return h("svg", { class: `bar ${kind}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": text },
    h("rect", { class: "track", width: 100, height: 10 }), h("rect", { class: "fill", width: wide.toFixed(2), height: 10 }));
}

const kind = (c) => [c.right && "right", c.tight && "tight", c.wide && "wide", c.spare && "spare"].filter(Boolean).join(" ") || null;

/**
 * table makes a table. A column is {name, right, tight, wide, spare, of(row)}: a tight one is not wrapped,
 * a wide one has room for a sentence, and narrow screens have no spare ones.
 * With mark, a row is made anew only if its mark has changed; wide tables scroll within their
 * own box, which the keyboard can reach.
 */
export function table(caption, columns, rows, key, mark) {
  columns = columns.filter(Boolean);
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption, "data-key": `table ${caption}` },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: kind(c) }, c.name)))),
      h("tbody", {}, rows.map((row, i) => {
        const tr = h("tr", { "data-key": key ? String(key(row)) : String(i) });
        const cells = () => columns.map((c) => h("td", { class: kind(c) }, c.of(row)));
        return lazy(tr, mark ? mark(row) : NaN, cells);
      }))));
}

/** facts lists names and values; those without a value are left out. */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(([, v]) => v !== "" && v !== undefined && v !== null && v !== false)
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

const marks = { Completed: "●", Done: "●", Up: "●", Running: "▶", Waiting: "○", Settling: "○", Pending: "○", Suspended: "⏸", Failed: "✕", Cancelled: "⊘", Discarded: "⊘", Lost: "✕", Quarantined: "!", Draining: "↓", Stopped: "■" };

/** state shows a state by a word, a mark and a colour: never by the colour alone. */
export function state(word) {
  return h("span", { class: `state ${String(word).toLowerCase()}` }, h("span", { "aria-hidden": "true" }, (marks[word] ?? "·") + " "), word);
}

export const loading = () => h("p", { class: "loading" }, "Asking the site …");

export function empty(text, ...more) {
  return h("div", { class: "empty" }, h("p", {}, text), more.length > 0 && h("p", {}, more));
}

/** failure says what went wrong and what to do. */
export function failure(err) {
  const denied = err.kind === "PermissionDenied";
  return h("div", { class: "failure", role: "alert" },
    h("p", {}, h("strong", {}, denied ? "Not allowed. " : err.passing ? "No answer. " : "Refused. "), written(err.message)),
    err.passing && h("p", {}, "The page asks again by itself."));
}

/** sentence writes a text of the site as a sentence, with its times in the viewer's zone, and rounded amounts. */
export function sentence(text) {
  text = String(text).replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at) => time(at) || at)
    .replace(/`[^`]*`|\d+\.\d{4,}/g, (part) => (part.startsWith("`") ? part : credits(Number(part))));
  text = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(text) ? text : text + ".";
}

/**
 * written shows a sentence of the site with its command lines as buttons. acts has a function for the verb of a command: it makes
 * the button from the words of the command. A command without a function stays text.
 */
export function written(text, acts = {}) {
  return sentence(text).split("`").map((part, i) => {
    if (i % 2 === 0) return part;
    const [candor, verb, ...words] = part.split(" ");
    return (candor === "candor" && acts[verb]?.(...words)) || h("code", {}, part);
  });
}

export const link = (to, ...text) => h("a", { href: `#/${to}` }, ...text);

/** legend says what the colours of cells stand for. */
export function legend(pairs) {
  return h("p", { class: "legend" }, pairs.map(([kind, text]) => h("span", {}, h("svg", { class: "key", viewBox: "0 0 10 10", "aria-hidden": "true" }, h("rect", { class: `cell ${kind}`, width: 10, height: 10, rx: 2 })), ` ${text}`)));
}

/** card is a section with a heading. */
export function card(title, ...children) {
  return h("section", { class: "card" }, title && h("h2", {}, title), children);
}
