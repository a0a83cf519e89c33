// All markets and all resources of the site on one page, now and over time.
import { h } from "../dom.js";
import { bytes, count, percent } from "../format.js";
import { history } from "../history.js";
import { bar, card, empty, link, table } from "../parts.js";
import { draw, plot } from "../plot.js";
import { classRow } from "../words.js";

const spans = [["1 hour", 3600], ["12 hours", 43200], ["7 days", 604800]];

export const overview = {
  title: "Overview",
  every: 2000,
  async load({ site, query }) {
    const over = Number(query.get("over")) || 3600;
    const [{ markets }, { nodes, licenses }] = await Promise.all([site.ask("auctioneer", "markets"), site.ask("auctioneer", "nodes")]);
    const pasts = await Promise.all(markets.map((m) => history(site, { market: m.market.name }, over)));
    return { markets, nodes, licenses: licenses ?? [], pasts, over };
  },
  view({ markets, nodes, licenses, pasts, over }) {
    const rows = markets.flatMap((m) => m.prices.map((p, i) => ({ m, first: i === 0, ...classRow(p) })));
    return [
      card("Markets", rows.length === 0 ? empty("The site has no market.") : table("Markets", [
        { name: "Market", of: (r) => (r.first ? link(`market/${r.m.market.name}`, r.m.market.name) : "") },
        { name: "Class", of: (r) => r.name }, { name: "Price (credits)", right: true, of: (r) => r.price },
        { name: "Slots", of: (r) => h("span", { class: "share" }, bar(r.busy, `${r.used} slots of ${r.name} used`), r.used) },
        { name: "Jobs waiting", right: true, of: (r) => (r.first ? count(r.m.waiting) : "") }, { name: "Jobs running", right: true, spare: true, of: (r) => (r.first ? count(r.m.running) : "") },
        { name: "Bidders", right: true, spare: true, of: (r) => r.bidders },
      ], rows, (r) => `${r.m.market.name} ${r.name}`)),
      card(["Resources ", h("small", {}, `of ${count(up(nodes).length)} of ${count(nodes.length)} nodes that are up`)], table("Resources", [
        { name: "Resource", of: (r) => r.name },
        { name: "Sold", of: (r) => h("span", { class: "share" }, bar(r.sold / Math.max(1, r.total), `${r.write(r.sold)} of ${r.write(r.total)} sold`), percent(r.sold / Math.max(1, r.total))) },
        { name: "Now", right: true, of: (r) => r.write(r.sold) }, { name: "In all", right: true, of: (r) => r.write(r.total) },
      ], resources(nodes, licenses), (r) => r.name)),
      h("p", { class: "row" }, h("span", { id: "span" }, "Over the last"), h("span", { role: "group", "aria-labelledby": "span" },
        spans.map(([text, s]) => [h("a", { href: `#/overview?over=${s}`, "aria-current": s === over ? "true" : null, class: "choice" }, text), " "]))),
      pasts.every((p) => p.at.length < 2) ? empty("The history of the markets begins now: the next steps appear here.") : h("div", { class: "grid two" },
        card("Slots in use", plot("all-used", "The part of the slots of each market that was in use")),
        card("Jobs waiting", plot("all-waiting", "The jobs that waited in each market"))),
    ];
  },
  after(_, { markets, pasts }) {
    const at = [...new Set(pasts.flatMap((p) => p.at))].sort((a, b) => a - b);
    if (at.length < 2) return;
    const lines = (of) => markets.map((m, i) => {
      const known = new Map(pasts[i].at.map((t, k) => [t, of(pasts[i], k)]));
      return { label: m.market.name, values: at.map((t) => known.get(t) ?? null), stepped: true };
    });
    const sum = (p, field, k) => p.classes.reduce((n, c) => n + c[field][k], 0);
    draw("all-used", at, lines((p, k) => (sum(p, "slots", k) ? sum(p, "used", k) / sum(p, "slots", k) : null)), { write: percent, unit: "% of the slots" });
    draw("all-waiting", at, lines((p, k) => p.waiting[k]), { write: count, unit: "jobs" });
  },
};

const up = (nodes) => nodes.filter((n) => n.state === "Up" || n.state === "Draining");

/** resources sums up the resources of the nodes that are up, and how much of them is sold to tasks. */
function resources(nodes, licenses) {
  const sums = new Map();
  const add = (name, total, sold, write = count) => {
    if (!total) return;
    const s = sums.get(name) ?? { name, total: 0, sold: 0, write };
    sums.set(name, { ...s, total: s.total + total, sold: s.sold + (sold ?? 0) });
  };
  for (const n of up(nodes)) {
    add("Processors", n.resources?.cpus, n.sold?.cpus);
    add("Memory", n.resources?.memory, n.sold?.memory, bytes);
    add(n.resources?.gpu_type ? `GPUs, ${n.resources.gpu_type}` : "GPUs", n.resources?.gpus, n.sold?.gpus);
    for (const s of n.slots) add(`Slots of ${s.class}`, s.slots, n.used.find((u) => u.class === s.class)?.slots);
  }
  for (const l of licenses) add(`Licences of ${l.name}`, l.total, l.used);
  return [...sums.values()];
}
