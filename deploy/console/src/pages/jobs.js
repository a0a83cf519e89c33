// The jobs, as the filters in the URL choose them.
import { h } from "../dom.js";
import { between, count, credits, time } from "../format.js";
import { card, empty, link, state, table } from "../parts.js";

export const states = ["Waiting", "Running", "Settling", "Completed", "Failed", "Cancelled", "Discarded"];
const most = 1000;

export const jobs = {
  title: "Jobs",
  every: 1000,
  async load({ site, query }) {
    site.operates ??= await operates(site);
    const request = { limit: Math.min(most, Number(query.get("n")) || 200) };
    for (const field of ["name", "market", "account", "project", "sort", "after"]) if (query.get(field)) request[field] = query.get(field);
    if (query.get("label")) request.labels = query.get("label").split(",");
    if (query.get("state")) request.states = query.get("state").split(",");
    if (query.get("all") && site.operates) request.all = true;
    const [reply, markets] = await Promise.all([site.ask("auctioneer", "jobs", request), site.ask("auctioneer", "markets")]);
    return { reply, markets: markets.markets.map((m) => m.market.name) };
  },
  view({ reply, markets }, context) {
    return [filters(markets, context), list(reply, context)];
  },
};

/** operates reports whether the user may see the jobs of all accounts. */
export async function operates(site) {
  try {
    await site.ask("auctioneer", "jobs", { all: true, limit: 1 });
    return true;
  } catch (err) {
    if (err.kind === "PermissionDenied") return false;
    throw err;
  }
}

/** to is the URL of this page with a filter changed. */
function to(query, changes) {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) value ? next.set(name, value) : next.delete(name);
  return `#/jobs${next.size ? `?${next}` : ""}`;
}

function filters(markets, { site, query, go }) {
  const set = (changes) => go(to(query, { after: "", ...changes }));
  const choose = (id, label, name, values) => h("div", {}, h("label", { for: id }, label),
    h("select", { id, onchange: (event) => set({ [name]: event.target.value }) },
      h("option", { value: "" }, "any"), values.map((v) => h("option", { value: v, selected: query.get(name) === v }, v))));
  // The filters are made once for a URL, so that typing is not disturbed.
  return h("form", { class: "row", "data-key": `filters ${query} ${markets} ${site.operates}`, "data-keep": "filters", onsubmit: (event) => {
    event.preventDefault();
    set({ name: event.target.elements.name.value });
  } },
  choose("state-filter", "State", "state", states), choose("market-filter", "Market", "market", markets),
  h("div", {}, h("label", { for: "name" }, "Name, with * for any text"), h("input", { id: "name", name: "name", value: query.get("name") ?? "" })),
  h("button", { type: "submit", class: "quiet" }, "Filter"),
  site.operates && h("div", { class: "check" }, h("input", { type: "checkbox", id: "all", checked: Boolean(query.get("all")), onchange: (event) => set({ all: event.target.checked ? "yes" : "" }) }),
    h("label", { for: "all" }, "Jobs of all accounts")),
  h("a", { href: "#/submit" }, "Submit a job"));
}

const sortings = { Job: "job", Name: "name", State: "state", Market: "market", Budget: "budget", Charged: "charged", Submitted: "submitted" };

function list(reply, { query }) {
  if (reply.jobs.length === 0) {
    return query.size ? empty("No job fits these filters.", h("a", { href: "#/jobs" }, "Show all"))
      : empty("You have no jobs yet.", h("a", { href: "#/submit" }, "Submit a job"));
  }
  const sort = query.get("sort") ?? "-job";
  const head = (name) => {
    const by = sortings[name];
    const mark = sort === by ? " ↑" : sort === `-${by}` ? " ↓" : "";
    return h("a", { class: "sort", href: to(query, { sort: sort === `-${by}` ? by : `-${by}`, after: "" }), "aria-label": `Sort by ${name}` }, name + mark);
  };
  return card("",
    table("Jobs", [
      { name: head("Job"), right: true, of: (j) => link(`job/${j.job}`, String(j.job)) },
      { name: head("Name"), of: (j) => j.name },
      query.get("all") && { name: "Account", of: (j) => j.account },
      { name: head("State"), of: (j) => h("span", {}, state(j.suspended && j.suspended === j.running ? "Suspended" : j.state), j.reason && j.reason !== j.state ? h("small", {}, ` ${j.reason}`) : "") },
      { name: "Tasks", right: true, of: (j) => tasks(j) },
      { name: head("Market"), of: (j) => link(`market/${j.market}`, j.market) },
      { name: head("Budget"), right: true, of: (j) => credits(j.budget) },
      { name: head("Charged"), right: true, of: (j) => credits(j.charged) },
      { name: head("Submitted"), tight: true, of: (j) => time(j.submitted) },
      { name: "Took", right: true, of: (j) => between(j.submitted, j.ended) },
    ], reply.jobs, (j) => j.job, (j) => JSON.stringify(j) + between(j.submitted, j.ended) + query.get("all")),
    h("p", { class: "row" }, h("span", { class: "hint" }, `${count(reply.jobs.length)} shown.`),
      reply.more && h("a", { href: to(query, { n: String(most), after: reply.next ?? "" }) }, "Show older jobs"),
      query.get("after") && h("a", { href: to(query, { after: "" }) }, "Back to the newest")));
}

function tasks(j) {
  const ended = `${count(j.done)}/${count(j.tasks)}`;
  return ended + (j.running ? `, ${count(j.running)} running` : "") + (j.failed ? `, ${count(j.failed)} failed` : "");
}
