// The markets now: prices, slots, who bids, and shares as bars that move.
import { h } from "../dom.js";
import { bidderRow, classColumns, classRow, headline, marketTitle, remarks } from "../words.js";
import { bar, card, empty, link, table } from "../parts.js";

export const now = {
  title: "Now",
  every: 1000,
  async load({ site }) {
    const [markets, nodes, account] = await Promise.all([
      site.ask("auctioneer", "markets"), site.ask("auctioneer", "nodes"), accountOf(site),
    ]);
    return { markets: markets.markets, nodes: nodes.nodes, account };
  },
  view(data) {
    return [h("p", { class: "headline" }, headline(data)), data.markets.map(market)];
  },
};

/** accountOf is the user's own account; nothing, if nobody has granted it credits yet. */
export async function accountOf(site) {
  try {
    return await site.ask("bank", "account");
  } catch (err) {
    if (err.kind === "NotFound") return { account: site.account, available: 0, reserved: 0 };
    throw err;
  }
}

function market(m) {
  return h("section", { class: "card", "data-key": `market ${m.market.name}` },
    h("h2", {}, link(`market/${m.market.name}`, m.market.name), " ", h("small", {}, `${m.market.mechanism} · ${marketTitle(m)}`)),
    classes(m), remarks(m).map((line) => h("p", { class: "remark" }, line)), bidders(m));
}

export function classes(m) {
  const rows = m.prices.map(classRow);
  const [name, price, slots, used, waiting, count] = classColumns;
  return table(`Classes of ${m.market.name}`, [
    { name, of: (c) => c.name },
    { name: price, right: true, of: (c) => c.price },
    { name: slots, of: (c) => bar(c.busy, `${c.used} slots used`, "wide") },
    { name: used, right: true, of: (c) => c.used },
    { name: waiting, right: true, of: (c) => c.waiting },
    { name: count, right: true, spare: true, of: (c) => c.bidders },
  ], rows, (c) => c.name);
}

export function bidders(m) {
  if (m.top.length === 0) return m.waiting + m.running === 0 ? empty("Nobody bids here now.") : null;
  const rows = m.top.map((j) => bidderRow(m, j));
  const some = (field) => rows.some((r) => r[field] !== "");
  return table(`Bidders on ${m.market.name}`, [
    { name: "Job", right: true, of: (r) => (r.budget ? link(`job/${r.job}`, String(r.job)) : String(r.job)) },
    some("name") && { name: "Name", spare: true, of: (r) => r.name },
    { name: "Account", of: (r) => r.account },
    some("budget") && { name: "Budget", right: true, spare: true, of: (r) => r.budget },
    { name: "Running", right: true, of: (r) => r.running },
    some("suspended") && { name: "Suspended", right: true, spare: true, of: (r) => r.suspended },
    { name: "Waiting", right: true, spare: true, of: (r) => r.waiting },
    ...m.market.classes.map((c, i) => ({
      name: c, of: (r) => r.shares[i] && h("span", { class: "share" }, bar(r.shares[i].share, `${r.shares[i].text} of ${c}`), r.shares[i].text),
    })),
  ], rows, (r) => r.job);
}
