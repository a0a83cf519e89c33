// The console: who asks (login), which page is shown (the part of the URL after #), and how
// the page stays up to date.
import { h, show } from "./dom.js";
import { time } from "./format.js";
import { leaveSignOn, login } from "./login.js";
import { empty, failure, loading } from "./parts.js";
import { redraw, undraw } from "./plot.js";
import { alerts } from "./pages/alerts.js";
import { honesty } from "./pages/honesty.js";
import { job } from "./pages/job.js";
import { jobs } from "./pages/jobs.js";
import { market } from "./pages/market.js";
import { money } from "./pages/money.js";
import { nodes } from "./pages/nodes.js";
import { now } from "./pages/now.js";
import { overview } from "./pages/overview.js";
import { sites } from "./pages/sites.js";
import { submit } from "./pages/submit.js";
import { usage } from "./pages/usage.js";

const pages = { now, overview, market, jobs, job, submit, money, usage, sites, nodes, honesty, alerts };
const menu = [["now", "Now"], ["overview", "Overview"], ["jobs", "Jobs"], ["submit", "Submit"], ["money", "Money"], ["usage", "Usage"], ["nodes", "Nodes"], ["sites", "Sites"], ["honesty", "Honesty"], ["alerts", "Alerts"]];

const main = document.getElementById("main"), head = document.getElementById("head"), told = document.getElementById("state");
let site, target, page, generation = 0;

/** route reads the URL: #/page/words?filters */
function route() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...words] = path.split("/").map(decodeURIComponent);
  return { name: pages[name] ? name : "now", words, query: new URLSearchParams(query), known: !name || Boolean(pages[name]) };
}

function drawHead() {
  const { name } = route();
  show(head, h("div", { class: "brand" }, h("a", { href: "#/now" }, "Candor"), " ", h("span", {}, target?.site ?? "")),
    site && h("nav", { "aria-label": "Pages" }, menu.map(([to, text]) => h("a", { href: `#/${to}`, "aria-current": to === name ? "page" : null }, text))),
    site && h("div", { class: "who" }, site.account, " ", h("button", { type: "button", class: "quiet", onclick: async () => {
      if (site.lent) await leaveSignOn();
      say("");
      leave();
    } }, "Leave")));
}

/** say tells what happened to the connection. */
function say(kind, ...text) {
  told.className = kind;
  show(told, ...text);
}

let lost = 0, restored;
function heard(up, closed) {
  clearTimeout(restored);
  if (up) {
    if (lost) say("good", `The connection is back, after ${Math.max(1, Math.round((Date.now() - lost) / 1000))} s.`);
    lost = 0;
    restored = setTimeout(() => say(""), 10000);
    wake?.();
    return;
  }
  lost ||= Date.now();
  say("bad", closed && site?.lent && Date.now() >= site.expires - 5000 ? "Your hour is over. Sign in again to go on."
    : closed ? `The site closed the connection: ${closed.message}. Connect again.`
    : `The connection to the site is lost. The page tries again by itself. It shows the state of ${time(new Date())}.`);
  if (closed && site) leave();
}

async function leave() {
  const old = site;
  site = undefined;
  generation++;
  undraw();
  await old?.close().catch(() => {});
  begin();
}

let wake;
/** visit shows the page of the URL and looks again and again, until another is shown. */
async function visit() {
  if (!site) return;
  const mine = ++generation;
  undraw();
  const { name, words, query, known } = route();
  page = Object.create(pages[name]);
  const context = { site, words, query, go: (to) => { location.hash = to; }, again: () => wake?.() };
  document.title = `${page.title} · ${site.site} · Candor`;
  drawHead();
  show(main, h("h1", {}, page.heading?.(context) ?? page.title), h("div", { id: "body" }, loading()));
  const body = document.getElementById("body");
  if (!known) return show(body, empty("There is no such page.", h("a", { href: "#/now" }, "Go to the first page")));
  let failed = 0;
  while (mine === generation) {
    try {
      const data = await page.load?.(context);
      if (mine !== generation) return;
      show(body, page.view(data, context));
      main.dataset.page = location.hash;
      page.after?.(body, data, context);
      if (failed >= 2 && site.up) say("good", "The site answers again."), (restored = setTimeout(() => say(""), 10000));
      failed = 0;
    } catch (err) {
      if (mine !== generation) return;
      if (!err.kind) console.error(err);
      // One failure may be an election of a leader: what is on the screen stays.
      if (!err.passing || body.querySelector(".loading")) show(body, failure(err)), (main.dataset.page = location.hash);
      else if (++failed === 2 && site.up) say("bad", `${err.message} The page asks again by itself; it shows the last answer.`);
    }
    if (!page.every) return;
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, failed ? Math.min(500, page.every) : page.every);
      wake = () => { clearTimeout(timer); resolve(); };
    });
    while (document.hidden && mine === generation) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
  }
}

function begin() {
  drawHead();
  login(main, target, (opened) => {
    site = opened;
    lost = 0;
    say("");
    main.ondrop = main.ondragover = null;
    visit();
  }, heard);
}

async function start() {
  try {
    target = await (await fetch("site.json")).json();
  } catch {
    return show(main, failure({ message: "The console's own server does not answer. Load the page again." }));
  }
  begin();
}

// A look at once, for whoever drives the page by a program.
addEventListener("candor-look", () => wake?.());
addEventListener("resize", () => redraw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => wake?.());
addEventListener("hashchange", () => { if (location.hash !== "#main") { visit(); window.scrollTo(0, 0); } });
start();
