// What another bid of a job would change: a slider, and the market's own answer.
import { h, show } from "./dom.js";
import { bar, card, failure, sentence, table } from "./parts.js";
import { bidWords, exactHour, whatIfColumns, whatIfLine, whatIfRow } from "./words.js";

const steps = 48; // on each side of the present bid; 12 of them double it

/** whatIf is the place of the slider; ask fills it once it is on the page. */
export const whatIf = () => card("What another bid would change", h("div", { id: "whatif", "data-keep": "whatif" }));

/** ask asks the market at the present bid, and shows the slider if there is one. */
export async function ask(job, context) {
  const box = document.getElementById("whatif");
  if (!box || Date.now() < (context.whatIf ?? 0)) return;
  context.whatIf = Infinity;
  const answer = await put(context.site, job, 0).catch((err) => ({ failed: err }));
  if (!answer.now) context.whatIf = Date.now() + 5000; // what stands against it may pass
  if (!answer.now) return show(box, answer.failed ? failure(answer.failed) : h("p", {}, sentence(answer.message)));
  slider(box, job, answer, context);
}

const put = (site, job, bid) => site.ask("auctioneer", "whatif", { job, bid });

// round keeps three digits of a bid, and no part of a microcredit.
const round = (bid) => Number(Math.max(1e-6, Number(bid.toPrecision(3))).toFixed(6));

function slider(box, job, first, context) {
  const { site } = context;
  const hourly = first.term === "rate", shown = (bid) => String(hourly ? exactHour(bid) : bid), words = (bid) => bidWords(first.term, bid);
  const present = first.now.bid, out = h("div", { role: "status", "aria-live": "polite" });
  const range = h("input", { type: "range", id: "bid", min: -steps, max: steps, step: 1, value: 0, "aria-valuetext": words(present), oninput: () => move(Number(range.value) === 0 ? present : round(present * 2 ** (range.value / 12))) });
  const exact = h("input", { id: "exact", inputmode: "decimal", value: shown(present), onchange: () => {
    const typed = Number(exact.value.replace(",", ".")), bid = hourly ? Number((typed / 3600).toFixed(6)) : typed;
    if (bid > 0) range.value = Math.round(12 * Math.log2(bid / present));
    move(bid > 0 ? bid : present);
  } });
  let turn = 0;
  async function move(bid) {
    exact.value = shown(bid);
    range.setAttribute("aria-valuetext", words(bid));
    const mine = ++turn;
    await new Promise((resolve) => setTimeout(resolve, 250));
    if (mine !== turn) return;
    try {
      const answer = await put(site, job, bid);
      if (mine === turn) show(out, result(job, answer, context));
    } catch (err) {
      if (mine === turn) show(out, failure(err));
    }
  }
  show(out, result(job, first, context));
  show(box, h("div", { class: "row" },
    h("div", { class: "slide" }, h("label", { for: "bid" }, `A ${first.term} from a sixteenth to sixteen times the present one`), range),
    h("div", {}, h("label", { for: "exact" }, `The ${first.term}, in credits${hourly ? " an hour" : ""}`), exact)), out);
}

/** raiseTo raises the job's bid to the value of the slider. The slider then begins at this bid. */
async function raiseTo(event, job, a, context) {
  event.target.disabled = true;
  try {
    await context.site.ask("auctioneer", "change", { key: crypto.randomUUID(), job, [a.term]: a.then.bid }, 15000);
    context.whatIf = 0;
    show(document.getElementById("raised"), h("p", { class: "good-news" }, `The ${a.term} is ${bidWords(a.term, a.then.bid)} now.`));
    context.again();
  } catch (err) {
    show(document.getElementById("raised"), failure(err));
    event.target.disabled = false;
  }
}

function result(job, a, context) {
  const columns = whatIfColumns.map((name, i) => ({ name, right: i > 0, of: (r) => (i === 1 || i === 2
    ? h("span", { class: "share" }, bar(i === 1 ? r.share : r.was, `${r.texts[i]} of ${r.texts[0]}`, i === 1 ? "" : "second"), r.texts[i]) : r.texts[i]) }));
  const raise = a.then.bid > a.now.bid;
  return [
    h("p", {}, whatIfLine(a)), h("p", {}, h("strong", {}, a.then.reason), ": ", sentence(a.then.message)),
    table("What another bid would change", columns, a.then.classes.map((c, i) => whatIfRow(c, a.now.classes[i])), (r) => r.texts[0]),
    h("p", { class: "hint" }, "The market's own rule on its present state, if all else stays as it is; the job does not change."),
    raise && h("p", { class: "row" }, h("button", { type: "button", class: "quiet", id: "raise", onclick: (event) => raiseTo(event, job, a, context) }, `Raise the ${a.term} to ${bidWords(a.term, a.then.bid)}`)),
    h("div", { id: "raised", role: "status" }),
  ];
}
