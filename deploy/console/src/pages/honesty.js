// Does lying pay? An audit of a market file tries the lies. The operator of the site keeps
// the last audit of each market; the viewer can also choose a report of the own machine.
import { h, show } from "../dom.js";
import { count, percent, plural, time } from "../format.js";
import { card, empty, facts, failure, table } from "../parts.js";

let report;

export const honesty = {
  title: "Honesty",
  async load({ site }) {
    const kept = await fetch("audits.json").then((r) => (r.ok ? r.json() : []), () => []);
    return { markets: (await site.ask("auctioneer", "markets")).markets.map((m) => m.market), kept: kept.filter((r) => Array.isArray(r.kinds)) };
  },
  view({ markets, kept }) {
    const read = async (file) => {
      try {
        const parsed = JSON.parse(await file.text());
        if (!Array.isArray(parsed.kinds)) throw new Error("kinds");
        report = parsed;
        show(document.getElementById("read"));
        show(document.getElementById("report"), result(report, markets, "The report that you chose"));
      } catch {
        show(document.getElementById("read"), failure({ kind: "Invalid", message: "This file is no report of an audit. candor audit --json writes one" }));
      }
    };
    const line = `candor audit --trace LOG.swf.gz --market ${markets[0]?.mechanism ?? "deadline"} --from 30d --to 37d`;
    return [
      kept.length === 0 ? card("Last audit", empty("The site keeps no audit. An operator makes one on the host of the console, with the site's market file and its state directory:"), h("pre", {}, `${line} --keep ~/.local/state/candor`))
        : kept.map((r) => result(r, markets, `Last audit of ${r.market?.name ?? r.market?.mechanism ?? r.market}`)),
      h("div", { id: "report" }, report && result(report, markets, "The report that you chose")),
      card("An audit of a market", h("p", {}, "An audit runs a market on the log of a real computer again and again, each time with one lie, and measures who gains by it. ",
        "Gains are parts of the value of a job. You can make a report on your machine too, and choose the file here:"),
      h("pre", {}, `${line} --json > audit.json`),
      h("p", {}, h("label", { for: "audit" }, "Report of an audit (JSON)"), h("input", { type: "file", id: "audit", accept: ".json,application/json", onchange: (event) => event.target.files[0] && read(event.target.files[0]) })),
      h("div", { role: "status", id: "read", "data-keep": "read" })),
    ];
  },
};

function result(report, markets, title) {
  const name = report.market?.mechanism ?? String(report.market);
  const here = markets.filter((m) => m.mechanism === name);
  return card(title,
    facts([["Made", report.made ? time(report.made) : ""], ["Mechanism", name], ["Log", report.trace ?? ""], ["Jobs that lied", count(report.jobs)], ["Runs", count(report.runs)],
      ["Bids drawn", report.redraws ? plural(report.redraws, "time") : ""], ["Seed", String(report.seed ?? "")], ["Markets of this site with it", here.map((m) => m.name).join(", ") || "none"]]),
    table(`Lies, ${title}`, [
      { name: "Lie", of: (k) => k.kind }, { name: "Jobs", right: true, of: (k) => count(k.jobs) }, { name: "Gainers", right: true, of: (k) => count(k.gainers) },
      { name: "Mean gain of the best fixed lie", right: true, of: (k) => (k.worst?.jobs ? `${signed(k.worst.mean)} (${signed(k.worst.mean_95[0])} to ${signed(k.worst.mean_95[1])})` : "") },
      { name: "Verdict", of: (k) => (!k.worst?.jobs ? "not tried" : k.worst.mean_95[0] > 0 ? "the lie gains on average" : "no gain is shown") },
      { name: "Largest, after the fact", right: true, of: (k) => percent(k.largest) },
    ], report.kinds, (k) => k.kind),
    (report.notes ?? []).map((n) => h("p", { class: "remark" }, n)),
    report.command && [h("h3", {}, "Made by"), h("pre", {}, report.command)]);
}

const signed = (x) => new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 2, signDisplay: "exceptZero" }).format(x);
