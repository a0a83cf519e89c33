// How a market, or a node, was over time. The leader of the auctioneer keeps it, in steps.
import { seconds } from "./format.js";

/** history asks for the past of a market or a node; at is in seconds since 1970. */
export async function history(site, of, span) {
  const reply = await site.ask("auctioneer", "history", { ...of, over: `${Math.ceil(span)}s` });
  return { ...reply, at: reply.at.map((t) => new Date(t).getTime() / 1000), step: seconds(reply.step),
    classes: reply.classes.map((c) => ({ ...c, price: c.price.map((p) => (p < 0 ? null : p)), pending: c.pending.map((p) => (p < 0 ? null : p)) })) };
}

/** over is how many seconds back a time reaches, with a little room. */
export function over(from, _to) {
  return Math.max(60, (Date.now() - new Date(from).getTime()) / 1000 + 30);
}
