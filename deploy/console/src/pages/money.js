// The credits of an account: the balance over time, what is held, every movement, projects
// and who spent what.
import { h } from "../dom.js";
import { change, count, credits, inCredits, named, time } from "../format.js";
import { card, empty, facts, link, sentence, table } from "../parts.js";
import { draw, plot } from "../plot.js";
import { fold, inWords, nameJobs } from "../statement.js";
import { saveTable } from "../csv.js";

export const money = {
  title: "Money",
  every: 2000,
  async load({ site, query }) {
    const of = query.get("account") ? { account: query.get("account") } : {};
    const [account, statement, accounts, live] = await Promise.all([
      site.ask("bank", "account", { ...of, holds: true }), site.ask("bank", "statement", { ...of, newest: true, limit: 500 }), site.ask("bank", "accounts", {}),
      site.ask("auctioneer", "jobs", { active: true, limit: 1000 }).then((r) => r.jobs, () => []),
    ]);
    for (const hold of account.pending ?? []) hold.job ||= live.find((j) => j.hold === hold.id)?.job;
    return { account, statement: { ...statement, entries: nameJobs(statement.entries, live) }, accounts: accounts.accounts };
  },
  view({ account: a, statement, accounts }, { site, query }) {
    const others = accounts.filter((o) => o.account !== a.account);
    return [
      others.length > 0 && h("p", { class: "row" }, h("span", {}, `Account ${a.account}.`), "Others that you may read:",
        others.slice(0, 30).map((o) => link(`money${o.account === site.account ? "" : `?account=${o.account}`}`, o.account))),
      card(a.title || a.account, facts([
        ["Available", inCredits(a.available)], ["Held for jobs", inCredits(a.reserved)], ["Balance", inCredits(a.balance)],
        ["Granted, ever", credits(a.granted)], ["Spent, ever", credits(a.spent)], ["Credit line", a.credit ? credits(a.credit) : ""],
        ["Frozen", a.frozen ? `by ${a.frozen}: ${a.why ?? ""}` : ""],
      ]), a.expiring?.map((e) => h("p", { class: "remark" }, `${inCredits(e.free)} expire ${time(e.expires)}.`)),
      statement.entries.length > 1 && plot("balance", `The balance over the last ${count(statement.entries.length)} movements: now ${inCredits(a.balance)}`)),
      h("div", { class: "grid" }, holds(a), roles(a), spenders(statement)),
      movements(statement, query),
    ];
  },
  after(body, { statement }) {
    const list = statement.entries;
    if (list.length < 2) return;
    const xs = list.map((e) => new Date(e.at).getTime() / 1000);
    draw("balance", xs, [{ label: "balance", values: list.map((e) => e.balance), stepped: true }, { label: "available", values: list.map((e) => e.balance - e.reserved), stepped: true, dash: [4, 3] }], { write: credits, unit: "credits" });
  },
};

function holds(a) {
  return card("Holds", !a.pending?.length ? empty("Nothing is held.") : table("Holds", [
    { name: "Job", of: (p) => (p.job ? link(`job/${p.job}`, String(p.job)) : p.id) }, { name: "Amount", right: true, of: (p) => credits(p.amount) },
    { name: "For", of: (p) => p.member }, { name: "Ends by itself", tight: true, of: (p) => (named(p.expires) ? time(p.expires) : "never") },
  ], a.pending, (p) => p.id));
}

function roles(a) {
  if (!a.roles?.length) return null;
  return card("Members", table("Members", [
    { name: "Member", of: (r) => r.member }, { name: "Role", of: (r) => r.role }, { name: "Spent", right: true, of: (r) => credits(r.spent) },
    { name: "Held", right: true, of: (r) => credits(r.held) }, { name: "Limit", right: true, of: (r) => (r.limit ? credits(r.limit) : "none") },
  ], a.roles, (r) => r.member));
}

/** spenders sums the charges of the statement by the member on whose word they were. */
function spenders(statement) {
  const sums = new Map();
  for (const e of statement.entries) {
    if (e.kind !== "post" || e.change >= 0) continue;
    const s = sums.get(e.member ?? "") ?? { member: e.member ?? "", spent: 0, jobs: new Set() };
    s.spent -= e.change;
    s.jobs.add(e.job);
    sums.set(s.member, s);
  }
  const list = [...sums.values()].sort((a, b) => b.spent - a.spent);
  return card("Who spent what", list.length === 0 ? empty("No job was charged in these movements.") : table("Spending", [
    { name: "Who", of: (s) => s.member || "unknown" }, { name: "Jobs", right: true, of: (s) => count(s.jobs.size) }, { name: "Spent", right: true, of: (s) => credits(s.spent) },
  ], list, (s) => s.member));
}

function movements(statement, query) {
  const each = query.get("holds") === "each", list = (each ? [...statement.entries] : fold(statement.entries)).reverse();
  const toggle = new URLSearchParams(query);
  if (each) toggle.delete("holds");
  else toggle.set("holds", "each");
  return card(["Statement ", h("small", {}, statement.more ? `the newest ${count(list.length)} movements` : "")],
    list.length === 0 ? empty("No credits have moved yet. An operator grants credits.") : [
      h("p", { class: "row" }, h("button", { type: "button", class: "quiet", onclick: () => saveTable(lines(statement), `statement-${statement.account}.csv`) }, "Export as CSV"),
        h("a", { href: `#/money${toggle.size ? `?${toggle}` : ""}` }, each ? "Show a hold and its end as one" : "Show each hold by itself")),
      table("Movements", [
        { name: "At", tight: true, of: (e) => time(e.at) }, { name: "Job", right: true, of: (e) => (e.job ? link(`job/${e.job}`, String(e.job)) : "") }, { name: "What", wide: true, of: (e) => [sentence(inWords(e)), e.since && h("small", {}, ` Held since ${time(e.since)}.`)] },
        { name: "Change", right: true, of: (e) => h("span", { class: e.change < 0 ? "loss" : "gain" }, change(e.change)) },
        { name: "Held", right: true, of: (e) => (e.since ? "" : change(e.hold)) }, { name: "Balance", right: true, of: (e) => credits(e.balance) },
      ], list, (e) => e.number)]);
}

const fields = ["number", "at", "kind", "job", "member", "reason", "change", "hold", "balance", "reserved"];
const lines = (statement) => [fields, ...statement.entries.map((e) => fields.map((f) => e[f]))];
