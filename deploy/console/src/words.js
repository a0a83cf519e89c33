// What candor top says of a site and its markets, in the same words. A test compares the two
// for one state.
import { count, credits, hourly, inCredits, percent, plural, price } from "./format.js";

export const classColumns = ["Class", "Price (credits)", "Slots", "Used", "Tasks waiting", "Bidders"];

export function headline({ nodes, account }) {
  const up = nodes.filter((n) => n.state === "Up").length;
  return `${count(up)} of ${plural(nodes.length, "node")} up`
    + (account ? ` · ${account.account}: ${inCredits(account.available)} available, ${credits(account.reserved)} held` : "");
}

export const marketTitle = (m) => `jobs: ${count(m.waiting)} waiting, ${count(m.running)} running`;

const slotPrice = (c) => (c.per_second ? `${hourly(c.price)}/h` : price(c.price));

/** classRow is a class of a market as candor top shows it: its texts, and how full it is. */
export function classRow(c) {
  const busy = c.slots - c.idle;
  return {
    name: c.class, price: c.sealed ? "sealed" : slotPrice(c), busy: c.slots ? busy / c.slots : 0,
    used: `${busy}/${c.slots}`, waiting: c.sealed ? "sealed" : count(c.pending), bidders: count(c.bidders),
  };
}

/** remarks are the sentences below the classes of a market. */
export function remarks(m) {
  const lines = [];
  for (const t of m.tariffs ?? []) {
    if (t.sealed) lines.push(`the price of ${t.class} is sealed while only one other account bids, because the price would show the bid of that account`);
    else if (t.contention === undefined || t.contention === null) lines.push(`a slot of ${t.class} costs ${tariff(t)}`);
    else if (t.contention > 0) lines.push(`slots of ${t.class} are scarce now: a job that runs only at such times pays up to ${Math.round(100 * t.contention)}% of its budget`);
  }
  for (const n of m.next ?? []) lines.push(`next for ${n.class}: job ${n.job} of ${n.account}${n.rate ? `, which bids ${anHour(n.rate)}` : ""}`);
  return lines;
}

const anHour = (price) => `${hourly(price)} ${hourly(price) === "1" ? "credit" : "credits"} an hour`;

const hasLength = (t) => Boolean(t.length) && t.length !== "0s";

export function tariff(t) {
  if (t.own_bid) return "the job's own bid";
  const costs = anHour(t.price);
  if (hasLength(t)) return `${costs} for a job of ${t.length}, in proportion to the length of the job`;
  return costs;
}

/**
 * priced says how to draw the price of a market: its unit, and the factor from the site's numbers to it. A market with
 * tariffs sells time, and the site gives its price for a slot-second. Other prices, and prices for a job of a given
 * length, are whole amounts.
 */
export function priced(m) {
  const timed = m?.tariffs?.filter((t) => t.contention === undefined || t.contention === null);
  return timed?.length && !timed.some(hasLength) ? { unit: "credits a slot-hour", factor: 3600 } : { unit: "credits", factor: 1 };
}

/** bidderRow is a job that bids, with its share of each class of its market. */
export function bidderRow(m, j) {
  return {
    job: j.job, name: j.name ?? "", account: j.account, budget: j.budget ? credits(j.budget) : "",
    running: count(j.running), suspended: j.suspended ? count(j.suspended) : "", waiting: count(j.pending),
    shares: m.market.classes.map((c) => {
      const s = j.shares.find((s) => s.class === c);
      return s ? { share: s.now, text: percent(s.now) } : null;
    }),
  };
}

/** What candor why --bid says, in the same words and numbers. */
export const whatIfColumns = ["Class", "Share", "Share now", "Slots", "Slots now", "Price", "Price now"];
export const whatIfLine = (a) => `Job ${a.job} if its ${a.term} were ${bidWords(a.term, a.then.bid)} (now ${a.term === "rate" ? `${exactHour(a.now.bid)}/h` : credits(a.now.bid)})`;
export function whatIfRow(c, now) {
  return { share: c.share, was: now.share, texts: [c.class, percent(c.share), percent(now.share), price(c.slots), price(now.slots), slotPrice(c), slotPrice(now)] };
}
/** bidWords writes a bid: the rate, which the site has for a slot-second, as a price of an hour. */
export const bidWords = (term, bid) => (term === "rate" ? `${exactHour(bid)} credits an hour` : inCredits(bid));
export const exactHour = (second) => Number((3600 * second).toFixed(4));
