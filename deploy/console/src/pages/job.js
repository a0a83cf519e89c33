// One job: how it ended, with the last lines of its errors, or why it is in its state; its stages and tasks, when they
// ran, the share that was bought and the share that was received, what was paid, and its output.
import { h, show } from "../dom.js";
import { between, bytes, count, credits, inCredits, named, percent, plural, price, seconds, span, time } from "../format.js";
import { bar, card, empty, facts, failure, legend, link, sentence, state, table, written } from "../parts.js";
import { draw, plot, scaled } from "../plot.js";
import { again as anew } from "../rerun.js";
import { fold, inWords, nameJobs } from "../statement.js";
import { save } from "../csv.js";
import { history, over } from "../history.js";
import { ask, whatIf } from "../whatif.js";
import { priced } from "../words.js";

const most = 1000;
const final = (s) => ["Completed", "Failed", "Cancelled", "Discarded"].includes(s);

export const job = {
  title: "Job",
  every: 1000,
  heading: ({ words }) => `Job ${words[0] ?? ""}`,
  async load(context) {
    const { site, words } = context;
    const number = Number(words[0]);
    if (!Number.isSafeInteger(number) || number < 1) throw Object.assign(new Error(`“${words[0] ?? ""}” is no number of a job`), { kind: "Invalid" });
    const detail = await site.ask("auctioneer", "job", { job: number });
    // Of a job that is over, what was said once stays true.
    if (context.kept && final(detail.state)) return context.kept;
    const [why, tasks, paid, past, market] = await Promise.all([
      site.ask("auctioneer", "why", { job: number }).catch((err) => ({ message: err.message, change: [] })),
      site.ask("auctioneer", "tasks", { job: number, limit: most, attempts: true }).catch(() => ({ tasks: [] })),
      charges(site, detail), history(site, { market: detail.market }, over(detail.submitted, detail.ended)).catch(() => null),
      site.ask("auctioneer", "markets").then(({ markets }) => markets.find((m) => m.market.name === detail.market)).catch(() => null),
    ]);
    const data = { detail, why, tasks, paid, past, price: priced(market), outputs: await outputs(site, detail), errors: await errors(detail, tasks, context) };
    if (final(detail.state)) context.kept = data;
    return data;
  },
  view(data, context) {
    const { detail: d, why, tasks } = data;
    return [
      summary(data, context),
      h("div", { class: "grid" }, !final(d.state) && explanation(d, why, context), shares(why.shares?.length ? why.shares : d.shares)),
      !final(d.state) && whatIf(), stages(d), grids(d, tasks), timeline(d, tasks), money(d, data), files(d, data, context), logs(d, tasks, context),
    ];
  },
  after(body, { detail, past, price: { unit, factor } }, context) {
    if (past?.at.length > 1) {
      draw("price", past.at, past.classes.filter((c) => detail.stages.some((s) => s.class === c.class)).map((c) => scaled({ label: `Price of ${c.class}`, values: c.price, stepped: true }, factor)), { write: price, unit, gap: "sealed" });
    }
    context.follow?.();
    ask(detail.job, context);
  },
};

/** deed returns a handler that asks the site for something about the job, and says how it went. */
const deed = ({ site, again }, verb, request, what) => async (event) => {
  event.target.disabled = true;
  const said = document.getElementById("did");
  try {
    const reply = await site.ask("auctioneer", verb, request, 15000);
    show(said, h("p", { class: "good-news" }, what(reply)));
  } catch (err) {
    show(said, failure(err));
  }
  event.target.disabled = false;
  again();
};

const quiet = (onclick, ...text) => h("button", { type: "button", class: "quiet", onclick }, text);

/** acts has a function for each command about a job that the page shows as a button. */
const acts = (d, context) => ({
  release: (job) => job === String(d.job) && quiet(deed(context, "release", { job: d.job }, () => "The job was released."), "Release"),
});

/** summary shows what people need first: how the job ended and why, or that it goes on; its last errors; what they can do. */
function summary({ detail: d, why, errors: last }, context) {
  const over = final(d.state), said = over ? why.message || d.message : d.message;
  return card([d.name || `job ${d.job}`, " ", state(d.state), " ", h("small", {}, d.reason !== d.state ? d.reason : "")],
    said && h("p", { class: over ? "lead" : "remark" }, written(said, acts(d, context))),
    over && (why.change ?? []).filter((c) => !c.includes("`candor logs")).map((c) => h("p", { class: "remark" }, "What would have changed it: ", written(c, acts(d, context)))),
    last && [h("h3", {}, last.title), h("pre", { id: "errors", tabindex: "0", "aria-label": last.title }, last.text || "(nothing)")],
    h("p", { class: "row" }, over ? repeat(d, context) : [
      d.reason === "OnHold" ? quiet(deed(context, "release", { job: d.job }, () => "The job was released."), "Release")
        : quiet(deed(context, "hold", { job: d.job }, () => "The job is on hold: it gets no more tasks."), "Hold"),
      quiet((event) => confirm(`Cancel job ${d.job}?`) && deed(context, "cancel", { job: d.job }, () => "The job was cancelled.")(event), "Cancel"),
    ]),
    h("div", { id: "did", role: "status", "data-keep": "did" }),
    facts([
      ["Account", d.account], ["Paid by", d.payer !== d.account ? d.payer : ""], ["Market", link(`market/${d.market}`, d.market)],
      ["Budget", inCredits(d.budget)], ["Charged", over ? inCredits(d.charged) : "when the job ends"],
      ["Tasks", `${count(d.done)} of ${plural(d.tasks, "task")} done`], ["Submitted", time(d.submitted)], ["Started", time(d.started)], ["Ended", time(d.ended)],
      ["Waited", between(d.submitted, named(d.started) ? d.started : d.ended)], ["Ran", between(d.started, d.ended)],
      ["Runs at", d.away?.site], ["Deadline", named(d.spec.deadline) ? time(d.spec.deadline) : ""], ["Comment", d.spec.comment],
      ["Labels", (Array.isArray(d.labels) ? d.labels : Object.entries(d.labels ?? {}).map((p) => p.join("="))).join(", ")],
      ["Runs again", d.spec.rerun_of ? link(`job/${d.spec.rerun_of}`, `job ${d.spec.rerun_of}`) : ""],
    ]));
}

/** repeat returns a button that submits an ended job again, if that is possible. */
function repeat(d, context) {
  if (d.account !== context.site.account || d.spec.contract || d.running > 0) return null;
  const left = d.tasks - d.done;
  return quiet(async (event) => {
    // If the request is sent again with the same key, the site makes no second job.
    const key = (context.key ??= crypto.randomUUID());
    event.target.disabled = true;
    try {
      const done = await Promise.all(d.stages.map((s, i) => finished(context.site, d, i)));
      const missing = await gone(context.site, d.spec);
      if (missing) throw Object.assign(new Error(`The site no longer has the file ${missing}: submit the job again, together with the file`), { kind: "NotFound" });
      const reply = await context.site.ask("auctioneer", "submit", { key, spec: anew(d, done), ...(d.away && { site: d.away.site }) }, 15000);
      context.key = undefined;
      show(document.getElementById("did"), h("p", { class: "good-news" }, `Submitted job ${reply.job} (${inCredits(reply.held)} held from ${reply.payer}). `, link(`job/${reply.job}`, `Show job ${reply.job}`)));
    } catch (err) {
      if (!err.passing) context.key = undefined;
      show(document.getElementById("did"), failure(err));
    }
    event.target.disabled = false;
  }, left === 0 || left === d.tasks ? "Run again" : `Run again the ${plural(left, "task")} that did not end well`);
}

/** finished returns the indices of the tasks of a stage that ended well. */
async function finished(site, d, stage) {
  const done = new Set();
  for (let from = 0, more = d.done < d.tasks; more;) {
    const reply = await site.ask("auctioneer", "tasks", { job: d.job, stage, from, limit: most });
    for (const t of reply.tasks) {
      if (t.state === "Done") done.add(t.index);
      from = t.index + 1;
    }
    more = reply.more && reply.tasks.length > 0;
  }
  return done;
}

/** gone returns the name of an input file that the site no longer has; undefined: it has all. */
async function gone(site, spec) {
  for (const f of spec.stages.flatMap((s) => s.inputs ?? [])) {
    if (!(await site.ask("depot", "put", { digest: f.digest, size: f.size })).done) return f.name;
  }
  return undefined;
}

const lastBytes = 8192, lastLines = 20;

/** errors returns the last lines of the attempt that failed last: of its errors, or of its output if there are no errors. */
async function errors(d, tasks, context) {
  const bad = tasks.tasks.filter((t) => t.state === "Failed" && t.node).sort((a, b) => new Date(b.ended) - new Date(a.ended))[0];
  if (!bad || d.state === "Completed") return null;
  const key = `${bad.stage} ${bad.index} ${bad.attempt}`;
  if (context.errors?.key === key) return context.errors;
  const attempt = { task: { job: d.job, stage: d.stages.findIndex((s) => s.name === bad.stage), index: bad.index }, number: bad.attempt };
  const where = d.tasks > 1 ? `task ${bad.array ?? bad.index} of ${bad.stage}` : "the task";
  try {
    for (const stderr of [true, false]) {
      const piece = await context.site.askNode(bad.node, "logs", { attempt, stderr, offset: -lastBytes, limit: lastBytes });
      const text = new TextDecoder().decode(decode(piece.data)).trimEnd().split("\n").slice(-lastLines).join("\n");
      if (text || !stderr) return (context.errors = { key, text, title: `The last lines of the ${stderr ? "errors" : "output"} of ${where}, on ${bad.node}` });
    }
  } catch (err) {
    return { title: `The errors of ${where} on ${bad.node} cannot be read now`, text: err.message };
  }
}

function explanation(d, why, context) {
  return card("Why", h("p", {}, h("strong", {}, why.reason ?? ""), why.reason ? ": " : "", written(why.message, acts(d, context))),
    why.change?.length > 0 && [h("h3", {}, "What would change it"), h("ul", {}, why.change.map((c) => h("li", {}, written(c, acts(d, context)))))]);
}

function shares(list) {
  const some = (list ?? []).filter((s) => s.allocated || s.received || s.now);
  return card("Share bought and received",
    some.length === 0 ? empty("The job has had no share yet.") : table("Shares", [
      { name: "Class", of: (s) => s.class },
      { name: "Bought", of: (s) => h("span", { class: "share" }, bar(s.allocated, `${percent(s.allocated)} bought`), percent(s.allocated)) },
      { name: "Received", of: (s) => h("span", { class: "share" }, bar(s.received, `${percent(s.received)} received`, "second"), percent(s.received)) },
      { name: "Now", right: true, of: (s) => percent(s.now) },
      { name: "Over", spare: true, right: true, of: (s) => span(seconds(s.over)) },
    ], some, (s) => s.class));
}

function stages(d) {
  return card("Stages", table("Stages", [
    { name: "Stage", of: (s) => s.name }, { name: "Class", of: (s) => s.class },
    { name: "Done", of: (s) => h("span", { class: "share" }, bar(s.done / Math.max(1, s.tasks), `${s.done} of ${s.tasks} done`), `${count(s.done)}/${count(s.tasks)}`) },
    { name: "Running", right: true, of: (s) => count(s.running - (s.suspended ?? 0)) },
    { name: "Suspended", right: true, of: (s) => (s.suspended ? count(s.suspended) : "") },
    { name: "Waiting", right: true, of: (s) => count(s.pending) },
    { name: "Failed", right: true, of: (s) => (s.failed ? count(s.failed) : "") },
    { name: "Slot time", right: true, of: (s) => span(seconds(s.slot_time)) },
    { name: "Processor time", right: true, of: (s) => (s.cpu ? span(seconds(s.cpu)) : "") },
    { name: "Memory", right: true, of: (s) => (s.max_rss ? bytes(s.max_rss) : "") },
  ], d.stages, (s) => s.name));
}

const latest = (tasks) => {
  const by = new Map();
  for (const t of tasks.tasks) if (!(by.get(`${t.stage} ${t.index}`)?.attempt > t.attempt)) by.set(`${t.stage} ${t.index}`, t);
  return by;
};

/** grids draws the tasks of an array as cells, one for each task. */
function grids(d, tasks) {
  const by = latest(tasks);
  return d.stages.filter((s) => s.tasks > 1).map((s) => {
    const n = Math.min(s.tasks, most), wide = Math.min(50, n);
    const cells = [];
    for (let i = 0; i < n; i++) {
      const t = by.get(`${s.name} ${i}`), word = t?.state ?? "Waiting";
      cells.push(h("rect", { class: `cell ${word.toLowerCase()}`, x: (i % wide) * 12, y: Math.floor(i / wide) * 12, width: 10, height: 10, rx: 2 },
        h("title", {}, `task ${i}: ${word}${t ? ` on ${t.node}` : ""}`)));
    }
    const counts = {};
    for (let i = 0; i < n; i++) counts[by.get(`${s.name} ${i}`)?.state ?? "Waiting"] = (counts[by.get(`${s.name} ${i}`)?.state ?? "Waiting"] ?? 0) + 1;
    const said = Object.entries(counts).map(([word, k]) => `${count(k)} ${word}`).join(", ");
    return card(`Tasks of ${s.name}`,
      h("svg", { class: "cells", viewBox: `0 0 ${wide * 12} ${Math.ceil(n / wide) * 12}`, style: undefined, width: wide * 12, role: "img", "aria-label": `Tasks: ${said}` }, cells),
      legend(Object.entries(counts).map(([word, k]) => [word.toLowerCase(), `${count(k)} ${word}`])),
      s.tasks > n && h("p", { class: "hint" }, `The first ${count(n)} of ${plural(s.tasks, "task")}.`));
  });
}

/** timeline draws when tasks ran, and for how long each was suspended. */
function timeline(d, tasks) {
  const rows = tasks.tasks.filter((t) => named(t.claimed)).slice(0, 60);
  if (rows.length === 0) return null;
  const now = Date.now();
  const from = new Date(d.submitted).getTime(), end = Math.max(...rows.map((t) => (named(t.ended) ? new Date(t.ended).getTime() : now)), from + 1);
  const x = (at) => (980 * (at - from)) / (end - from);
  const marks = rows.map((t, i) => {
    const a = x(new Date(t.claimed).getTime()), b = x(named(t.ended) ? new Date(t.ended).getTime() : now), paused = seconds(t.suspended);
    const width = Math.max(2, b - a), held = Math.min(width, (980 * 1000 * paused) / (end - from));
    return h("g", {}, h("title", {}, `task ${t.index} of ${t.stage}, attempt ${t.attempt}, on ${t.node}: ${t.state}, ran ${span(seconds(t.ran))}${paused ? `, suspended ${span(paused)}` : ""}`),
      h("rect", { class: `cell ${t.state.toLowerCase()}`, x: a.toFixed(1), y: i * 12, width: width.toFixed(1), height: 9, rx: 1 }),
      held > 0 && h("rect", { class: "pause", x: (a + width - held).toFixed(1), y: i * 12 + 3, width: held.toFixed(1), height: 3 }));
  });
  const suspended = rows.reduce((sum, t) => sum + seconds(t.suspended), 0);
  return card("Timeline",
    h("svg", { class: "gantt", viewBox: `0 0 980 ${rows.length * 12}`, preserveAspectRatio: "none", role: "img", "aria-label": `When ${plural(rows.length, "attempt")} ran, from ${time(from)} to ${time(end)}` }, marks),
    h("p", { class: "ends" }, h("span", {}, time(from)), h("span", {}, time(end))),
    h("p", { class: "hint" }, rows.length < tasks.tasks.length ? `The first ${count(rows.length)} attempts. ` : "",
      suspended ? `The line inside a bar is as long as the task was suspended: ${span(suspended)} together.` : "No task was suspended."));
}

async function charges(site, d) {
  const statement = await site.ask("bank", "statement", { account: d.payer, from: new Date(new Date(d.submitted).getTime() - 60000).toISOString(), limit: 1000 }).catch(() => null);
  if (!statement) return null;
  return nameJobs(statement.entries, [d]).filter((e) => e.job === d.job);
}

function money(d, { paid, past, price }) {
  return card("Price and payments",
    past?.at.length > 1 && plot("price", `Price on market ${d.market} while the job was there, in ${price.unit}`),
    paid === null ? empty("The statement of the payer is not yours to read.")
      : paid.length === 0 ? empty("Nothing was held or charged yet.")
        : table("Payments", [
          { name: "At", tight: true, of: (e) => time(e.at) }, { name: "What", wide: true, of: (e) => [sentence(inWords(e)), e.since && h("small", {}, ` Held since ${time(e.since)}.`)] },
          { name: "Change", right: true, of: (e) => (e.change ? credits(e.change) : "") }, { name: "Held", right: true, of: (e) => (e.hold && !e.since ? credits(e.hold) : "") },
        ], fold(paid), (e) => e.number));
}

async function outputs(site, d) {
  const found = [];
  for (const [i, s] of d.spec.stages.entries()) {
    if (!s.outputs?.length) continue;
    const reply = await site.ask("depot", "outputs", { job: d.job, stage: i, limit: most, ...(site.account !== d.account && { account: d.account }) }).catch(() => null);
    for (const t of reply?.tasks ?? []) for (const f of t.files) found.push({ ...f, task: t.attempt.task.index, stage: s.name });
  }
  return found;
}

function files(d, { outputs }, { site }) {
  if (!d.spec.stages.some((s) => s.outputs?.length)) return null;
  const fetchFile = async (f, event) => {
    event.target.disabled = true;
    const parts = [];
    try {
      for (let offset = 0, size = f.size; offset < size;) {
        const piece = await site.ask("depot", "get", { digest: f.digest, offset, attempt: { task: { job: 0, stage: 0, index: 0 }, number: 0 }, ...(site.account !== d.account && { account: d.account }) }, 20000);
        const data = decode(piece.data);
        size = piece.size;
        if (data.length === 0) break;
        parts.push(data);
        offset += data.length;
      }
      save(new Blob(parts), f.name.split("/").pop());
    } catch (err) {
      show(document.getElementById("fetched"), failure(err));
    }
    event.target.disabled = false;
  };
  return card("Files", outputs.length === 0 ? empty("No task has left a file yet.") : table("Files", [
    { name: "File", of: (f) => f.name }, { name: "Task", of: (f) => `${f.stage} ${f.task}` }, { name: "Size", right: true, of: (f) => bytes(f.size) },
    { name: "", of: (f) => h("button", { type: "button", class: "quiet", onclick: (event) => fetchFile(f, event) }, `Download ${f.name}`) },
  ], outputs, (f) => `${f.stage} ${f.task} ${f.name}`), h("div", { id: "fetched", role: "status", "data-keep": "fetched" }));
}

export const decode = (text) => Uint8Array.from(atob(text ?? ""), (c) => c.charCodeAt(0));

// logs shows the output of a task as it is written. The choice of the task is the page's own.
function logs(d, tasks, context) {
  const rows = tasks.tasks.filter((t) => t.node);
  const name = (t) => `${t.stage} ${t.index}, attempt ${t.attempt} on ${t.node}`;
  const choice = `${rows.map(name)}`;
  const read = () => follow(d, rows, context);
  context.follow = () => { if (!context.log && rows.length > 0) read(); };
  return card("Output", rows.length === 0 ? empty("No task has started yet.") : [
    h("p", { class: "row", "data-key": `choice ${choice}`, "data-keep": "choice" },
      h("span", {}, h("label", { for: "attempt" }, "Task"), h("select", { id: "attempt", onchange: read }, rows.slice(0, 200).map((t, i) => h("option", { value: i }, name(t))))),
      h("span", { class: "check" }, h("input", { type: "checkbox", id: "stderr", onchange: read }), h("label", { for: "stderr" }, "Errors (stderr)"))),
    h("pre", { id: "log", tabindex: "0", "aria-label": "Output of the task", "data-keep": "log" }),
    h("p", { id: "logged", class: "hint", role: "status", "data-keep": "logged" })]);
}

async function follow(d, rows, context) {
  const mine = (context.log = {});
  const pre = document.getElementById("log"), said = document.getElementById("logged");
  const chosen = rows[Number(document.getElementById("attempt")?.value ?? 0)];
  if (!pre || !chosen) return;
  show(pre);
  const stderr = document.getElementById("stderr").checked;
  const attempt = { task: { job: d.job, stage: d.stages.findIndex((s) => s.name === chosen.stage), index: chosen.index }, number: chosen.attempt };
  const text = new TextDecoder();
  let offset = 0;
  while (context.log === mine && pre.isConnected) {
    try {
      const piece = await context.site.askNode(chosen.node, "logs", { attempt, stderr, offset, limit: 65536, wait: "1s" }, 6000);
      if (context.log !== mine) return;
      const below = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 30;
      if (piece.missing) pre.append(`\n[${bytes(piece.missing)} of the output were not kept]\n`);
      pre.append(text.decode(decode(piece.data), { stream: true }));
      if (pre.textContent.length > 400000) pre.textContent = pre.textContent.slice(-300000);
      if (below) pre.scrollTop = pre.scrollHeight;
      offset = piece.next;
      show(said, piece.end ? (pre.textContent ? "The output is whole." : "The task wrote nothing here.") : "The page shows the output as it is written.");
      if (piece.end) return;
    } catch (err) {
      show(said, err.passing ? `${sentence(err.message)} The page asks again.` : sentence(err.message));
      if (!err.passing) return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
