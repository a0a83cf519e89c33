// Does lying pay? An audit of a market file tries the lies; its report is read here. The site
// keeps no audit, so the report is a file of the viewer.
import { h, show } from "../dom.js";
import { count, percent } from "../format.js";
import { card, empty, failure, table } from "../parts.js";

let report;

export const honesty = {
  title: "Honesty",
  async load({ site }) {
    return (await site.ask("auctioneer", "markets")).markets.map((m) => m.market);
  },
  view(markets, context) {
    const said = h("div", { role: "status", id: "read", "data-keep": "read" });
    const read = async (file) => {
      try {
        const parsed = JSON.parse(await file.text());
        if (!Array.isArray(parsed.kinds)) throw new Error("kinds");
        report = parsed;
        show(document.getElementById("read"));
        context.again();
        show(document.getElementById("report"), table1(markets));
      } catch {
        show(document.getElementById("read"), failure({ kind: "Invalid", message: "This file is no report of an audit. candor audit --json writes one" }));
      }
    };
    return [
      card("An audit of a market", h("p", {}, "An audit runs a market on the log of a real computer again and again, each time with one lie, and measures who gains by it. ",
        "Gains are parts of the value of a job. Make a report on your machine, and choose the file here:"),
      h("pre", {}, `candor audit --trace LOG.swf.gz --market ${markets[0]?.mechanism ?? "deadline"} --from 30d --to 37d --json > audit.json`),
      h("p", {}, h("label", { for: "audit" }, "Report of an audit (JSON)"), h("input", { type: "file", id: "audit", accept: ".json,application/json", onchange: (event) => event.target.files[0] && read(event.target.files[0]) })), said),
      h("div", { id: "report" }, table1(markets)),
    ];
  },
};

function table1(markets) {
  if (!report) return card("Last audit", empty("No report was chosen yet."));
  const name = typeof report.market === "string" ? report.market : report.market?.mechanism ?? report.market?.name ?? "";
  const here = markets.filter((m) => m.mechanism === name || m.name === name || m.mechanism === report.market?.mechanism);
  return card("Last audit",
    h("p", {}, `${name} on ${report.trace ?? "a log"}: ${count(report.jobs)} jobs, ${count(report.runs)} runs. `,
      here.length > 0 ? `Markets of this site with this mechanism: ${here.map((m) => m.name).join(", ")}.` : "No market of this site has this mechanism."),
    table("Lies", [
      { name: "Lie", of: (k) => k.kind }, { name: "Jobs", right: true, of: (k) => count(k.jobs) }, { name: "Gainers", right: true, of: (k) => count(k.gainers) },
      { name: "Mean gain of the best fixed lie", right: true, of: (k) => (k.worst?.jobs ? `${signed(k.worst.mean)} (${signed(k.worst.mean_95[0])} to ${signed(k.worst.mean_95[1])})` : "") },
      { name: "Verdict", of: (k) => (!k.worst?.jobs ? "not tried" : k.worst.mean_95[0] > 0 ? "the lie gains on average" : "no gain is shown") },
      { name: "Largest, after the fact", right: true, of: (k) => percent(k.largest) },
    ], report.kinds, (k) => k.kind),
    (report.notes ?? []).map((n) => h("p", { class: "remark" }, n)));
}

const signed = (x) => new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2, signDisplay: "exceptZero" }).format(x);
