// One market: price, demand, utilisation and one's own share over time, the bids as far as
// they are public, and the timetable of reservations.
import { h } from "../dom.js";
import { between, count, named, percent, price, span, time } from "../format.js";
import { history } from "../history.js";
import { card, empty, facts, legend, link, state, table } from "../parts.js";
import { draw, plot, scaled } from "../plot.js";
import { marketTitle, priced, remarks } from "../words.js";
import { bidders, classes } from "./now.js";

const spans = [["10 minutes", 600], ["1 hour", 3600], ["12 hours", 43200], ["7 days", 604800]];

export const market = {
  title: "Market",
  every: 1000,
  heading: ({ words }) => `Market ${words[0] ?? ""}`,
  async load(context) {
    const { site, words, query } = context;
    const { markets } = await site.ask("auctioneer", "markets");
    const found = markets.find((m) => m.market.name === words[0]);
    if (!found) throw Object.assign(new Error(`there is no market “${words[0] ?? ""}”; there are ${markets.map((m) => m.market.name).join(", ")}`), { kind: "NotFound" });
    const over = Number(query.get("over")) || 3600;
    const [past, reserved] = await Promise.all([
      history(site, { market: words[0] }, over),
      found.reserves ? site.ask("auctioneer", "reservations", { market: words[0] }) : null,
    ]);
    return { m: found, past, over, reserved: reserved?.reservations };
  },
  view({ m, past, over, reserved }, { words }) {
    const held = past.at.length > 1;
    const kept = past.at.length ? time(past.since) : "";
    return [
      card([h("span", {}, m.market.mechanism), " ", h("small", {}, marketTitle(m))], rules(m), classes(m),
        remarks(m).map((line) => h("p", { class: "remark" }, line)), m.gains && h("p", { class: "remark" }, `actions known to gain more than a true bid: ${m.gains}`)),
      reserved && timetable(reserved),
      h("p", { class: "row" }, h("span", { id: "span" }, "Over the last"), h("span", { role: "group", "aria-labelledby": "span" },
        spans.map(([text, s]) => [h("a", { href: `#/market/${words[0]}?over=${s}`, "aria-current": s === over ? "true" : null, class: "choice" }, text), " "])),
      kept && h("span", { class: "hint" }, `Kept since ${kept}, in steps of ${span(past.step)}.`)),
      held ? h("div", { class: "grid two" },
        card("Price", plot("price", last(past, "price", (p) => price(p * priced(m).factor), priced(m).unit))),
        card("Slots in use", plot("used", last(past, "use", percent, ""))),
        card("Demand", plot("demand", `Tasks that wait and jobs that run: now ${count(past.waiting.at(-1))} jobs waiting, ${count(past.running.at(-1))} running`)),
        card("Your share", plot("share", past.own?.length ? `The part of the slots that your jobs had: now ${percent(past.own.at(-1))}` : "Your jobs had no slots here")))
        : empty("The history of this market begins now: the next steps appear here."),
      card("Who bids", h("p", { class: "hint" }, "Names, budgets and job pages are shown for your own jobs; operators see all."), bidders(m) ?? empty("The market does not tell who bids.")),
      m.bid.includes("contract") && card("Menu", h("p", {}, link(`submit?market=${m.market.name}`, "Describe a job"), " to see its menu of contracts as a curve, with your own valuation over it.")),
    ];
  },
  after(body, { m, past }) {
    if (past.at.length < 2) return;
    const each = (field, label) => past.classes.map((c) => ({ label: `${label}${c.class}`, values: c[field], stepped: true }));
    draw("price", past.at, each("price", "").map((l) => scaled(l, priced(m).factor)), { write: price, unit: priced(m).unit, gap: "sealed" });
    draw("used", past.at, past.classes.map((c) => ({ label: c.class, values: c.used.map((u, i) => (c.slots[i] ? u / c.slots[i] : null)), stepped: true })), { write: percent, unit: "% of the slots" });
    draw("demand", past.at, [{ label: "jobs waiting", values: past.waiting, stepped: true }, { label: "jobs running", values: past.running, stepped: true },
      ...past.classes.map((c) => ({ label: `slots wanted, ${c.class}`, values: c.pending, stepped: true, dash: [4, 3] }))], { write: count, unit: "jobs, slots", gap: "sealed" });
    if (past.own?.length) draw("share", past.at, [{ label: "your share", values: past.own, stepped: true }], { write: percent, unit: "% of the slots" });
  },
};

function last(past, what, write, unit) {
  const parts = past.classes.map((c) => {
    const value = what === "price" ? c.price.at(-1) : c.slots.at(-1) ? c.used.at(-1) / c.slots.at(-1) : 0;
    return `${c.class} ${value === null ? "sealed" : `${write(value)} ${unit}`.trim()}`;
  });
  return `${what === "price" ? "The price now" : "In use now"}: ${parts.join(", ")}`;
}

function rules(m) {
  const { name, mechanism, classes, prior, prior_jobs: _, weights, ...rest } = m.market;
  const plain = Object.entries(rest).filter(([, v]) => typeof v !== "object");
  return plain.length === 0 ? null : facts(plain.map(([k, v]) => [k.replaceAll("_", " "), String(v)]));
}

/** timetable draws reservations as bars in time, one row for each. */
function timetable(list) {
  if (list.length === 0) return card("Timetable", empty("No slots are reserved. Bids are sealed until the market decides."));
  const now = Date.now();
  const from = Math.min(...list.map((r) => new Date(r.start).getTime()), now), end = Math.max(...list.map((r) => new Date(r.end).getTime()), from + 1);
  const x = (at) => (980 * (at - from)) / (end - from);
  return card("Timetable",
    h("svg", { class: "gantt", viewBox: `0 0 980 ${list.length * 14}`, preserveAspectRatio: "none", role: "img", "aria-label": `Reservations from ${time(from)} to ${time(end)}` },
      list.map((r, i) => {
        const a = x(new Date(r.start).getTime()), b = x(new Date(r.end).getTime());
        return h("g", {}, h("title", {}, `${r.slots} slots of ${r.class}, ${time(r.start)} to ${time(r.end)}`),
          h("rect", { class: r.job ? "cell running" : "cell done", x: a.toFixed(1), y: i * 14, width: Math.max(2, b - a).toFixed(1), height: 11, rx: 2 }));
      }),
      h("line", { class: "now", x1: x(now), x2: x(now), y1: 0, y2: list.length * 14 })),
    h("p", { class: "ends" }, h("span", {}, time(from)), h("span", {}, time(end))),
    legend([["running", "your jobs"], ["done", "jobs of others"]]),
    table("Reservations", [
      { name: "Start", tight: true, of: (r) => time(r.start) }, { name: "End", tight: true, of: (r) => time(r.end) }, { name: "For", right: true, of: (r) => between(r.start, r.end) },
      { name: "Slots", right: true, of: (r) => count(r.slots) }, { name: "Class", of: (r) => r.class },
      { name: "Job", of: (r) => (r.job ? link(`job/${r.job}`, String(r.job)) : "") }, { name: "State", of: (r) => (r.state && named(r.start) ? state(r.state) : "") },
    ], list));
}

