// The nodes: slots, health, quarantine; operators can take work from a node and give it work.
import { h, show } from "../dom.js";
import { between, count, percent, time } from "../format.js";
import { history } from "../history.js";
import { bar, card, empty, facts, failure, sentence, state, table } from "../parts.js";
import { draw, plot } from "../plot.js";
import { operates } from "./jobs.js";

export const nodes = {
  title: "Nodes",
  every: 1000,
  async load({ site, words }) {
    site.operates ??= await operates(site);
    const { nodes, windows } = await site.ask("auctioneer", "nodes");
    const past = words[0] && nodes.some((n) => n.node === words[0]) ? await history(site, { node: words[0] }, 43200) : null;
    return { nodes, windows, past };
  },
  view({ nodes, windows, past }, context) {
    if (nodes.length === 0) return empty("No nodes. A node appears when its agent registers.");
    const { site, words } = context;
    return [
      h("p", { class: "headline" }, `${count(nodes.filter((n) => n.state === "Up").length)} of ${count(nodes.length)} nodes up`),
      past && one(nodes.find((n) => n.node === words[0]), past),
      h("div", { id: "drained", role: "status", "data-keep": "drained" }),
      card("Nodes", table("Nodes", [
        { name: "Node", of: (n) => h("a", { href: `#/nodes/${n.node}` }, n.node) }, { name: "State", of: (n) => state(n.state) },
        { name: "Slots", of: (n) => n.slots.map((s, i) => h("span", { class: "share" }, bar((n.used[i]?.slots ?? 0) / Math.max(1, s.slots), `${s.class}: ${n.used[i]?.slots ?? 0} of ${s.slots} used`), `${s.class} ${n.used[i]?.slots ?? 0}/${s.slots}`)) },
        { name: "For", right: true, of: (n) => between(n.since) }, { name: "Finished", right: true, of: (n) => count(n.finished) },
        { name: "Suspended", right: true, of: (n) => (n.most_suspended ? `${n.suspended ?? 0}/${n.most_suspended}` : "") },
        { name: "Remark", of: (n) => remark(n) },
        site.operates && { name: "Work", of: (n) => drain(n, context) },
      ], nodes, (n) => n.node)),
      windows?.length > 0 && card("Maintenance", table("Maintenance", [
        { name: "Window", of: (w) => w.id }, { name: "From", of: (w) => time(w.from) }, { name: "To", of: (w) => time(w.to) }, { name: "Nodes", of: (w) => w.nodes.join(", ") }, { name: "Reason", of: (w) => w.reason ?? "" },
      ], windows, (w) => w.id)),
    ];
  },
  after(body, { past }) {
    if (past?.at.length > 1) draw("node", past.at, past.classes.map((c) => ({ label: c.class, values: c.used.map((u, i) => (c.slots[i] ? u / c.slots[i] : null)), stepped: true })), { write: percent, unit: "% of the slots" });
  },
};

function one(n, past) {
  return card(`Node ${n.node}`, facts([["State", state(n.state)], ["Since", time(n.since)], ["Can", (n.abilities ?? []).join(", ")], ["Attempts that ended there", count(n.finished)]]),
    past.at.length > 1 ? plot("node", `Slots of ${n.node} in use, since ${time(past.since)}`) : empty("The history of this node begins now."));
}

function remark(n) {
  const parts = [];
  if (n.reason) parts.push(sentence(n.reason));
  if (n.window) parts.push(`In maintenance, window ${n.window}.`);
  if (n.state === "Draining" && !n.drain_by) parts.push("Drains: its tasks run to their end.");
  if (n.drain_by) parts.push(`Drains: tasks that still run at ${time(n.drain_by)} will run again on other nodes.`);
  if (n.probe_at) parts.push(`Next probe ${time(n.probe_at)}.`);
  return parts.join(" ");
}

function drain(n, { site, again }) {
  const undo = n.state === "Draining" || n.state === "Quarantined";
  if (!undo && n.state !== "Up") return "";
  return h("button", { type: "button", class: "quiet", onclick: async (event) => {
    const reason = undo ? "" : prompt(`Give ${n.node} no more work. Its tasks run to their end. The reason, for users to read:`, "maintenance");
    if (reason === null) return;
    event.target.disabled = true;
    const said = document.getElementById("drained");
    try {
      await site.ask("auctioneer", "drain", { node: n.node, undo, reason });
      show(said, h("p", { class: "good-news" }, undo ? `${n.node} takes work again.` : `${n.node} gets no more work.`));
    } catch (err) {
      show(said, failure(err));
    }
    event.target.disabled = false;
    again();
  } }, undo ? `Resume ${n.node}` : `Drain ${n.node}`);
}
