// The peers of the site: whether they are linked, how far they are, and who owes what.
import { h } from "../dom.js";
import { count, credits, inCredits, seconds, time } from "../format.js";
import { card, empty, facts, sentence, state, table } from "../parts.js";

export const sites = {
  title: "Sites",
  every: 3000,
  async load({ site }) {
    let bank;
    try {
      bank = await site.ask("bank", "peers");
    } catch (err) {
      if (err.kind === "PermissionDenied") return {};
      throw err;
    }
    const links = bank.peers.length === 0 ? null : await site.ask("links", "status", {}, 5000).catch(() => null);
    return { bank, links };
  },
  view({ bank, links }) {
    if (!bank) return empty("Operators see the peers of the site. With the credentials of an operator this page shows links, round trips and debts.");
    if (bank.peers.length === 0) return empty("The site has no peers. An operator names them in the configuration, or uses candor site invite and candor site join.");
    const milli = (text) => (seconds(text) > 0 ? `${(1000 * seconds(text)).toFixed(1)} ms` : "");
    const to = (p) => (links?.links ?? []).filter((l) => l.peer === p.peer);
    const trip = (p) => links?.trips?.find((t) => t.peer === p.peer);
    const net = bank.peers.reduce((sum, p) => sum + p.owed, 0);
    return [
      card(`Site ${bank.site}`, facts([
        ["Net position", net === 0 ? "even" : net > 0 ? `owes ${inCredits(net)}` : `is owed ${inCredits(-net)}`],
        ["Settled, unpaid", bank.settled ? inCredits(bank.settled) : "nothing"], ["Reserve", inCredits(bank.reserve)], ["Last cycle", bank.cycle ? count(bank.cycle) : "none yet"],
      ]), bank.fault && h("p", { class: "failure" }, sentence(bank.fault)), !links && h("p", { class: "remark" }, "The site does not know its links now.")),
      card("Peers", table("Peers", [
        { name: "Peer", of: (p) => p.peer },
        { name: "Linked", of: (p) => (links ? state(to(p).length > 0 ? "Up" : "Lost") : "") },
        { name: "Round trip", right: true, of: (p) => milli(to(p).map((l) => l.rtt).sort((a, b) => seconds(a) - seconds(b))[0]) },
        { name: "Bank reply", right: true, of: (p) => milli(trip(p)?.took) || (trip(p)?.failure ? "silent" : "") },
        { name: "This site owes", right: true, of: (p) => credits(Math.max(0, p.owed)) }, { name: "Peer owes", right: true, of: (p) => credits(Math.max(0, -p.owed)) },
        { name: "Limit", right: true, of: (p) => credits(p.limit) }, { name: "In flight", right: true, of: (p) => (p.outstanding ? count(p.outstanding) : "") },
        { name: "Heard", tight: true, of: (p) => time(p.heard) }, { name: "State", of: (p) => p.dispute || (p.tries ? `does not answer: ${p.failure}` : String(p.standing ?? "")) },
      ], bank.peers, (p) => p.peer)),
    ];
  },
};
