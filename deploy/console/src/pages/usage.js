// Who used what: the jobs that ended in a span of time, summed up as candor usage does. Operators see the jobs of all
// accounts, other people only their own.
import { h } from "../dom.js";
import { plural, time } from "../format.js";
import { card, empty, table } from "../parts.js";
import { saveTable } from "../csv.js";
import { grouping, hasEnded, numbers, Sums } from "../usage.js";

const written = (date) => `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}-${String(date.getDate()).padStart(2, "0")}`;
const inDays = (n) => { const d = new Date(); d.setDate(d.getDate() + n); return written(d); };
const midnight = (text) => new Date(`${text}T00:00:00`);
const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(text ?? "") && !Number.isNaN(midnight(text).getTime());

export const usage = {
  title: "Usage",
  async load({ site, query }) {
    const here = location.hash;
    const from = isDay(query.get("from")) ? query.get("from") : inDays(-30), to = isDay(query.get("to")) ? query.get("to") : inDays(1);
    const by = (query.get("by") || "account").split(",");
    const report = { from, to, by, whose: "all accounts", unreadable: 0, sums: new Sums(by) };
    const request = { all: true, since: midnight(from).toISOString(), until: midnight(to).toISOString(), limit: 1000 };
    for (let more = true; more && location.hash === here;) {
      let reply;
      try {
        reply = await site.ask("auctioneer", "jobs", request);
      } catch (err) {
        if (err.kind !== "PermissionDenied" || !request.all) throw err;
        request.all = false;
        report.whose = `account ${site.account}`;
        continue;
      }
      for (const j of reply.jobs) if (hasEnded(j, midnight(from), midnight(to))) report.sums.add(j);
      report.complete = reply.complete_since;
      report.unreadable += reply.unreadable ?? 0;
      more = reply.more && Boolean(reply.next);
      request.after = reply.next;
    }
    return report;
  },
  view(report, { go }) {
    return [form(report, go), result(report)];
  },
};

function form({ from, to, by }, go) {
  const label = by.find((word) => word.startsWith("label="))?.slice(6) ?? "";
  const box = (word) => h("span", { class: "check" }, h("input", { type: "checkbox", id: `by-${word}`, name: "by", value: word, checked: by.includes(word) }), h("label", { for: `by-${word}` }, word));
  return h("form", { class: "card", onsubmit: (event) => {
    event.preventDefault();
    const f = new FormData(event.target), chosen = [...f.getAll("by"), ...(f.get("label").trim() ? [`label=${f.get("label").trim()}`] : [])];
    go(`#/usage?${new URLSearchParams({ by: chosen.join(",") || "account", from: f.get("from"), to: f.get("to") })}`);
  } },
  h("div", { class: "row" },
    h("div", {}, h("label", { for: "from" }, "Jobs that ended from"), h("input", { type: "date", id: "from", name: "from", value: from, required: true })),
    h("div", {}, h("label", { for: "to" }, "and before"), h("input", { type: "date", id: "to", name: "to", value: to, required: true })),
    h("div", {}, h("label", { for: "label" }, "By the label"), h("input", { id: "label", name: "label", value: label, placeholder: "run" }))),
  h("div", { class: "row", role: "group", "aria-label": "Sum up by" }, h("span", {}, "Sum up by"), grouping.map(box)),
  h("p", {}, h("button", { type: "submit" }, "Show")));
}

function result({ from, to, whose, sums, complete, unreadable }) {
  const rows = sums.sorted();
  const list = rows.length > 1 ? [...rows, { ...sums.all, keys: sums.by.map((_, i) => (i === 0 ? "All" : "")), sum: true }] : rows;
  return card(["Usage of ", whose, " ", h("small", {}, `jobs that ended from ${time(midnight(from))} to ${time(midnight(to))}`)],
    rows.length === 0 ? empty("No job ended in this time.") : [
      h("p", {}, h("button", { type: "button", class: "quiet", onclick: () => saveTable(sums.lines(), `usage-${from}-${to}.csv`) }, "Download as CSV")),
      table("Usage", [
        ...sums.by.map((word, i) => ({ name: word.charAt(0).toUpperCase() + word.slice(1), of: (r) => (r.sum ? h("strong", {}, r.keys[i]) : r.keys[i] || "none") })),
        ...numbers.map(([name, of, spare]) => ({ name, right: true, spare, of })),
      ], list, (r) => (r.sum ? "sum" : r.keys.join("\0"))),
    ],
    complete && new Date(complete) > midnight(from) && h("p", { class: "remark" }, `Jobs that ended before ${time(complete)} may be missing: the site does not keep records for so long.`),
    unreadable > 0 && h("p", { class: "remark" }, `Not counted: ${plural(unreadable, "record")} that could not be read.`),
    h("p", { class: "hint" }, "The hours count the processors and GPUs that a job had, busy or not. A job that used several classes counts in each of them."));
}
