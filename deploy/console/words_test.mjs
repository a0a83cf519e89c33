// Prints what the console says of the state or the answer that is read, a line for each line
// of candor top or candor why --bid, with tabs between the texts.
import { readFileSync } from "node:fs";
import { speak } from "./src/format.js";
import { bidderRow, classRow, headline, marketTitle, remarks, whatIfLine, whatIfRow } from "./src/words.js";

speak("en-US", "UTC");
const state = JSON.parse(readFileSync(0, "utf8"));
if (state.then) {
  console.log(whatIfLine(state));
  console.log(`${state.then.reason}: ${state.then.message}`);
  state.then.classes.forEach((c, i) => console.log(whatIfRow(c, state.now.classes[i]).texts.join("\t")));
  process.exit();
}
console.log(headline(state).replaceAll(" · ", "\t"));
for (const m of state.markets) {
  console.log([m.market.name, m.market.mechanism, marketTitle(m)].join("\t"));
  for (const c of m.prices.map(classRow)) console.log([c.name, c.price, c.used, c.waiting, c.bidders].join("\t"));
  for (const line of remarks(m)) console.log(line);
  for (const r of m.top.map((j) => bidderRow(m, j))) {
    console.log([r.job, r.name, r.account, r.budget, r.running, r.suspended, r.waiting, ...r.shares.filter(Boolean).map((s) => s.text)].filter((t) => t !== "").join("\t"));
  }
}
