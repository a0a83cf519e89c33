// A provider of OpenID Connect for the tests: npm's oidc-provider, with one client. It prints its address, reads the
// address of the console to which it sends people back, and serves until its input ends. Everybody may sign in under
// any name. A person with "ops" in the name is in the group of operators.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

let answer = (_, response) => response.writeHead(503).end();
const server = createServer((request, response) => answer(request, response)).listen(0, "127.0.0.1", async () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  console.log(issuer);
  for await (const back of createInterface({ input: process.stdin })) {
    const provider = new Provider(issuer, {
      clients: [{ client_id: "candor", client_secret: "s3cret", redirect_uris: [back] }],
      claims: { openid: ["sub"], profile: ["preferred_username", "groups"] },
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, preferred_username: id.replace(/^ops-/, ""), groups: id.startsWith("ops-") ? ["candor-operators"] : [] }) }),
      pkce: { required: () => true },
      cookies: { keys: ["of the test"] },
    });
    answer = provider.callback();
    console.log("serves");
  }
  process.exit();
});
