// A new job: a form, checked by the site while it is filled in, with what is expected of the
// job, a menu where the market sells contracts, and the command line that does the same.
import { h, show } from "../dom.js";
import { count, credits, inCredits, plural, price, seconds, span, time } from "../format.js";
import { card, facts, failure, loading, sentence, table } from "../parts.js";
import { draw, plot } from "../plot.js";
import { exactHour } from "../words.js";

const labels = {
  rate: ["Bid for an hour of a slot, in credits", "36"], value: ["Worth of the completion, in credits", "10"], delay: ["Cost of a second of waiting, in credits", "0.001"],
  length: ["Run time", "10m"], deadline: ["Completed by", ""], worth: ["Worth of an early completion, in credits", "10"],
  until: ["The worth is whole for", "10m"], fade: ["And then falls to nothing within", "10m"],
};

export const submit = {
  title: "Submit a job",
  async load({ site }) {
    return (await site.ask("auctioneer", "markets")).markets.map((m) => ({ ...m.market, bid: m.bid, gains: m.gains }));
  },
  view(markets, context) {
    return [h("div", { class: "grid" }, form(markets, context), h("div", { id: "checked", class: "card", role: "status", "aria-live": "polite", "data-keep": "checked" }, h("h2", {}, "Check"), loading()))];
  },
  after(body, markets, context) {
    fields(markets, context);
  },
};

const field = (id, label, attributes = {}) => h("div", {}, h("label", { for: id }, label), h("input", { id, name: id, ...attributes }));

function form(markets, context) {
  const { query } = context;
  const changed = () => check(markets, context);
  return h("form", { class: "card", id: "job", oninput: changed, onsubmit: (event) => { event.preventDefault(); send(markets, context); } },
    h("h2", {}, "Job"),
    field("jobname", "Name", { value: query.get("name") ?? "", placeholder: "sort", autocomplete: "off" }),
    h("div", {}, h("label", { for: "script" }, "Script"), h("textarea", { id: "script", rows: 7, spellcheck: "false" }, "#!/bin/sh\necho \"task $CANDOR_TASK on $CANDOR_NODE\"\n")),
    h("div", { class: "row" },
      h("div", {}, h("label", { for: "market" }, "Market"), h("select", { id: "market", onchange: () => { fields(markets, context); } },
        markets.map((m) => h("option", { value: m.name, selected: m.name === query.get("market") }, `${m.name} (${m.mechanism})`)))),
      h("div", {}, h("label", { for: "class" }, "Class of slot"), h("select", { id: "class" })),
      field("tasks", "Tasks", { type: "number", min: 1, max: 1000000, value: 1 }),
      field("budget", "Budget, in credits", { inputmode: "decimal", value: query.get("budget") ?? "1" }),
      field("limit", "Time limit of a task", { placeholder: "none, like 10m" }),
      field("project", "Project that pays", { placeholder: "your own account" })),
    h("div", { class: "row", id: "bid" }),
    h("p", { class: "hint", id: "gains" }),
    h("p", { class: "row" }, h("button", { type: "submit", id: "send" }, "Submit"), h("span", { class: "hint" }, "Nothing is submitted before you press the button.")),
    h("div", { id: "sent", role: "status" }));
}

const value = (id) => document.getElementById(id)?.value.trim() ?? "";
// The fields for what the market reads of a bid, beside the budget.
const asks = (m) => m.bid.flatMap((name) => (name === "valuation" ? ["worth", "until", "fade"] : labels[name] ? [name] : []));
const chosen = (markets) => markets.find((m) => m.name === value("market")) ?? markets[0];

/** fields shows what the chosen market asks for. */
function fields(markets, context) {
  const m = chosen(markets), old = value("class");
  show(document.getElementById("gains"), `Known to gain more than a true bid in this market: ${m.gains}.`);
  show(document.getElementById("class"), m.classes.map((c) => h("option", { value: c, selected: c === old }, c)));
  show(document.getElementById("bid"), asks(m).map((name) => h("div", { "data-key": name },
    h("label", { for: `bid-${name}` }, labels[name][0]), h("input", { id: `bid-${name}`, type: name === "deadline" ? "datetime-local" : "text", value: labels[name][1] }))));
  check(markets, context);
}

/** specOf is the job that the form describes. */
function specOf(m) {
  const stage = { name: "main", class: value("class"), script: document.getElementById("script").value };
  if (Number(value("tasks")) > 1) stage.tasks = Number(value("tasks"));
  if (value("limit")) stage.time_limit = value("limit");
  const spec = { market: m.name, budget: Number(value("budget").replace(",", ".")), stages: [stage] };
  if (value("jobname")) spec.name = value("jobname");
  if (value("project")) spec.project = value("project");
  for (const name of asks(m)) {
    const text = value(`bid-${name}`);
    if (!text) continue;
    if (name === "length") spec.length = text;
    else if (name === "deadline") spec.deadline = new Date(text).toISOString();
    else if (name === "rate") spec.rate = Number((Number(text.replace(",", ".")) / 3600).toFixed(6)); // the site has it for a second
    else if (["value", "delay"].includes(name)) spec[name] = Number(text.replace(",", "."));
  }
  if (m.bid.includes("contract")) {
    spec.valuation = { class: "linear-decay", max: Number(value("bid-worth")) || 0, mu: seconds(value("bid-until")), delta: seconds(value("bid-fade")) };
  }
  return spec;
}

const quote = (text) => (/^[\w.\/:=+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** commandLine says the same to a shell. */
export function commandLine(spec) {
  const stage = spec.stages[0];
  const words = ["candor submit --script", `--budget ${spec.budget}`, `--market ${spec.market}`];
  if (stage.class) words.push(`--class ${stage.class}`);
  if (stage.tasks) words.push(`--tasks ${stage.tasks}`);
  if (stage.time_limit) words.push(`--time ${stage.time_limit}`);
  if (spec.name) words.push(`--name ${quote(spec.name)}`);
  if (spec.project) words.push(`--project ${quote(spec.project)}`);
  if (spec.rate) words.push(`--rate ${exactHour(spec.rate)}/h`);
  for (const name of ["value", "delay", "length", "deadline"]) if (spec[name]) words.push(`--${name} ${spec[name]}`);
  if (spec.contract) words.push(`--contract ${spec.contract}`);
  const script = stage.script.endsWith("\n") ? stage.script : stage.script + "\n";
  return `${words.join(" ")} - <<'END'\n${script}END`;
}

let turn = 0;
let menu; // the contract that was chosen of the menu

async function check(markets, context) {
  const mine = ++turn;
  await new Promise((resolve) => setTimeout(resolve, 300));
  const box = document.getElementById("checked");
  if (mine !== turn || !box) return;
  const m = chosen(markets), spec = specOf(m), { site } = context;
  let tried, failed, expected, quoted;
  try {
    if (m.bid.includes("contract")) {
      quoted = await site.ask("auctioneer", "quote", { spec });
      const take = quoted.contracts.find((c) => c.id === menu) ?? quoted.contracts.find((c) => c.declared) ?? quoted.contracts[0];
      if (take) {
        menu = take.id;
        [spec.contract, spec.budget] = [take.id, take.budget];
      }
    }
    [tried, expected] = await Promise.all([
      site.ask("auctioneer", "submit", { key: crypto.randomUUID(), spec, dry_run: true }),
      site.ask("estimator", "estimate", { spec }).catch(() => null),
    ]);
  } catch (err) {
    failed = err;
  }
  if (mine !== turn) return;
  context.spec = failed ? null : spec;
  document.getElementById("send").disabled = Boolean(failed);
  show(box, h("h2", {}, "Check"), failed ? failure(failed) : [
    h("p", { class: "good-news" }, `The site would take this job of ${plural(tried.tasks, "task")}, and hold ${inCredits(tried.held)} of ${tried.payer}.`),
    (tried.warnings ?? []).map((w) => h("p", { class: "remark" }, sentence(w))),
    expected && facts([
      ["Expected wait", about(expected.wait)], ["Expected completion", about(expected.completion)],
      ["Rests on", expected.runs >= 0.5 ? `${plural(Math.round(expected.runs), "job")} of yours or others` : "no job yet: this is a guess"],
    ]),
    quoted && contracts(quoted, markets, context),
  ], h("h3", {}, "The same at the command line"), h("pre", {}, commandLine(spec)));
  if (quoted && !failed) curve(quoted, spec);
}

const about = (s) => (seconds(s?.median) > 0 ? `${span(seconds(s.median))} (${span(seconds(s.low))} to ${span(seconds(s.high))})` : "");

function contracts(quoted, markets, context) {
  return [h("h3", {}, "Menu"), h("p", { class: "hint" }, `Valid until ${time(quoted.expires)}. The chosen contract goes with the job.`),
    plot("menu", "The price of each completion time, and what it is worth to you"),
    table("Contracts", [
      { name: "", of: (c) => h("input", { type: "radio", name: "contract", value: c.id, "aria-label": `contract ${c.id}`, checked: c.id === menu, onchange: () => { menu = c.id; check(markets, context); } }) },
      { name: "Completed by", tight: true, of: (c) => time(c.completion) }, { name: "Price", right: true, of: (c) => credits(c.price) },
      { name: "Worth", right: true, of: (c) => price(c.promised) }, { name: "Budget", right: true, of: (c) => credits(c.budget) },
      { name: "", of: (c) => (c.declared ? "fits what you declared" : c.free ? "free" : "") },
    ], quoted.contracts, (c) => c.id)];
}

/** curve draws a menu: price over completion, with the valuation of the form over it. */
function curve(quoted, spec) {
  const now = Date.now() / 1000, v = spec.valuation;
  const list = quoted.contracts.map((c) => [Math.max(0, new Date(c.completion).getTime() / 1000 - now), c.price]).sort((a, b) => a[0] - b[0]);
  const worth = (s) => v.max * Math.max(0, Math.min(1, 1 - (s - v.mu) / Math.max(1, v.delta)));
  const xs = [...new Set([...list.map(([s]) => s), 0, v.mu, v.mu + v.delta])].sort((a, b) => a - b);
  const at = new Map(list);
  draw("menu", xs, [{ label: "price", values: xs.map((s) => at.get(s) ?? null), points: true }, { label: "worth to you", values: xs.map(worth), dash: [6, 4] }],
    { linear: true, write: price, xWrite: (s) => span(s), unit: "credits", xUnit: "time from now" });
}

async function send(markets, context) {
  const said = document.getElementById("sent"), button = document.getElementById("send");
  if (!context.spec) return;
  // A request that is repeated with its key makes no second job.
  const key = (context.key ??= crypto.randomUUID());
  button.disabled = true;
  show(said, loading());
  try {
    const reply = await context.site.ask("auctioneer", "submit", { key, spec: context.spec }, 15000);
    context.key = undefined;
    show(said, h("p", { class: "good-news" }, `Submitted job ${count(reply.job)} (${inCredits(reply.held)} held from ${reply.payer}). `, h("a", { href: `#/job/${reply.job}` }, `Show job ${reply.job}`)));
  } catch (err) {
    if (!err.passing) context.key = undefined;
    show(said, failure(err));
  }
  button.disabled = false;
}
