// What needs somebody's attention, as far as the site itself tells it to the viewer.
import { h } from "../dom.js";
import { count, inCredits, plural, time } from "../format.js";
import { card, empty, link, sentence } from "../parts.js";
import { accountOf } from "./now.js";

const quiet = (err) => {
  if (err.kind === "PermissionDenied") return null;
  throw err;
};

export const alerts = {
  title: "Alerts",
  every: 2000,
  async load({ site }) {
    const [nodes, markets, books, account, auctioneers, banks, peers] = await Promise.all([
      site.ask("auctioneer", "nodes"), site.ask("auctioneer", "markets"), site.ask("bank", "books", {}).catch(quiet), accountOf(site),
      site.ask("auctioneer", "replicas").catch(quiet), site.ask("bank", "replicas").catch(quiet), site.ask("bank", "peers").catch(quiet),
    ]);
    return { nodes: nodes.nodes, markets: markets.markets, books, account, groups: [auctioneers, banks].filter(Boolean), peers: peers?.peers ?? [] };
  },
  view(data, { site }) {
    const list = found(data, site);
    return [
      list.length === 0 ? h("p", { class: "good-news" }, "Nothing needs attention.") : list.map((a) => card([h("span", { class: a.grave ? "state failed" : "state waiting" }, h("span", { "aria-hidden": "true" }, "! "), a.grave ? "Grave" : "Warning"), " ", a.title],
        h("p", {}, sentence(a.text), " ", a.to && link(a.to, "Show")))),
      card("What is looked at", h("p", {}, "Nodes, classes of slots, the books of the bank, your account and your credentials",
        data.groups.length > 0 ? ", and for operators the replicas and the peers" : "", ". The rules for Prometheus know more; they are in deploy/monitoring, and the runbook says what to do.")),
      data.books && card("Books", data.books.balanced ? empty(`The books balance: ${inCredits(data.books.issued)} were granted, and the accounts have as many. ${count(data.books.transfers)} transfers.`) : h("p", {}, sentence(data.books.message))),
    ];
  },
};

function found({ nodes, markets, books, account, groups, peers }, site) {
  const list = [];
  const add = (grave, title, text, to) => list.push({ grave, title, text, to });
  const gone = nodes.filter((n) => n.state === "Lost"), held = nodes.filter((n) => n.state === "Quarantined");
  if (gone.length) add(gone.length * 2 > nodes.length, `${plural(gone.length, "node")} lost`, `no answer of ${names(gone)}; their tasks run again on other nodes`, "nodes");
  for (const n of held) add(false, `${n.node} is in quarantine`, n.reason ?? "a probe failed there", "nodes");
  for (const m of markets) {
    for (const c of m.prices) if (c.slots === 0 && m.waiting > 0) add(true, `No slots of ${c.class}`, `jobs wait on market ${m.market.name}, and no node that is up has slots of ${c.class}`, `market/${m.market.name}`);
  }
  if (books && !books.balanced) add(true, "The books do not balance", books.message);
  if (account.frozen) add(true, "Your account is frozen", `${account.frozen} froze it: ${account.why ?? ""}`, "money");
  if (account.available <= 0) add(false, "No credits are available", "new jobs cannot be held; an operator grants credits", "money");
  for (const e of account.expiring ?? []) if (new Date(e.expires) - Date.now() < 7 * 86400e3) add(false, "Credits expire soon", `${inCredits(e.free)} expire ${time(e.expires)}`, "money");
  if (site.expires && site.expires - Date.now() < 7 * 86400e3) add(false, "Your credentials expire soon", `they are valid until ${time(site.expires)}; the command line renews them: use any command, then load the new file here`);
  for (const g of groups) {
    const silent = g.replicas.filter((r) => !r.answers && !r.leads), weak = g.replicas.filter((r) => r.weak);
    if (silent.length) add(g.spare <= 0, `${plural(silent.length, "replica")} of the ${g.actor} missing`, `no answer of ${silent.map((r) => r.id).join(", ")}; the group can lose ${count(Math.max(0, g.spare))} more`);
    for (const r of weak) add(false, `Replica ${r.id} of the ${g.actor} should not lead`, r.weak);
  }
  for (const p of peers) {
    if (p.dispute) add(true, `The books with ${p.peer} do not agree`, p.dispute, "sites");
    else if (p.tries) add(false, `${p.peer} does not answer`, p.failure, "sites");
  }
  return list.sort((a, b) => b.grave - a.grave);
}

const names = (list) => list.slice(0, 8).map((n) => n.node).join(", ") + (list.length > 8 ? ` and ${count(list.length - 8)} more` : "");
