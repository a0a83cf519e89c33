// The site, asked as the command line asks it: requests in JSON on the subjects
// candor.SITE.ACTOR.VERB.ACCOUNT, with the user's own credentials.
import { credsAuthenticator, headers, wsconnect } from "@nats-io/nats-core";

/** Refusal is an error that the site answered, or its silence. */
export class Refusal extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
  /** passing errors may be gone the next time. */
  get passing() {
    return ["NotLeader", "Unavailable", "Unknown"].includes(this.kind);
  }
}

/** claims reads what a credentials file says: whose it is, and until when. */
export function claims(creds) {
  const token = /-----BEGIN NATS USER JWT-----\s*([\w-]+\.[\w-]+\.[\w-]+)\s*-+END NATS USER JWT/.exec(creds)?.[1];
  if (!token || !/-----BEGIN USER NKEY SEED-----\s*SU\w+/.test(creds)) {
    throw new Refusal("Invalid", "This text is no credentials file. A credentials file begins with “-----BEGIN NATS USER JWT-----” and has a seed as well.");
  }
  const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
  const body = JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (c) => c.charCodeAt(0))));
  return { account: body.name, expires: body.exp ? body.exp * 1000 : 0 };
}

export class Site {
  /** connect opens a connection that is restored by itself until close. */
  static async connect({ site, websocket }, creds, heard) {
    const { account, expires } = claims(creds);
    const s = Object.assign(new Site(), { site, account, expires, up: true });
    try {
      s.nc = await wsconnect({
        servers: websocket, authenticator: credsAuthenticator(new TextEncoder().encode(creds)),
        inboxPrefix: `_INBOX_${account}`, ignoreClusterUpdates: true, timeout: 5000, name: "candor console",
        reconnect: true, maxReconnectAttempts: -1, reconnectTimeWait: 500, pingInterval: 5000, maxPingOut: 2, waitOnFirstConnect: false,
      });
    } catch (err) {
      throw refusal(err, `Site ${site} does not accept these credentials, or does not answer at ${websocket}`);
    }
    s.watch(heard);
    return s;
  }

  async watch(heard) {
    for await (const status of this.nc.status()) {
      if (status.type === "disconnect" || status.type === "reconnecting" || status.type === "staleConnection") this.up = false;
      else if (status.type === "reconnect") this.up = true;
      else continue;
      if (!this.left) heard(this.up);
    }
    this.up = false;
    if (!this.left) heard(false, await this.nc.closed());
  }

  /** ask sends a request to an actor of the site. */
  ask(actor, verb, body = {}, timeout = 4000) {
    return this.send(`candor.${this.site}.${actor}.${verb}.${this.account}`, body, { timeout });
  }

  /** askNode sends a request about the tasks of a node to its agent. */
  askNode(node, verb, body, timeout = 4000) {
    const reply = `_LOGS.${node}.${this.account}.${crypto.randomUUID().replaceAll("-", "")}`;
    return this.send(`candor.${this.site}.nodeagent.${verb}.${node}.${this.account}`, body, { timeout, noMux: true, reply });
  }

  async send(subject, body, options) {
    const h = headers();
    h.set("Content-Type", "application/json");
    let answer;
    try {
      answer = await this.nc.request(subject, JSON.stringify(body), { ...options, headers: h });
    } catch (err) {
      throw refusal(err, "The site did not answer in time");
    }
    const code = answer.headers?.get("Nats-Service-Error-Code");
    if (!code) return answer.json();
    let said = answer.headers.get("Nats-Service-Error");
    try {
      said = answer.json().message || said;
    } catch { /* the header says it */ }
    throw new Refusal(code, said);
  }

  /** close ends the connection; watch then says nothing about its end. */
  close() {
    this.left = true;
    return this.nc.close();
  }
}

function refusal(err, otherwise) {
  const name = err.name + " " + (err.cause?.name ?? "") + " " + err.message;
  if (/NoResponders|no responders/i.test(name)) return new Refusal("Unavailable", "Nobody serves this request now: the site may be choosing a leader.");
  if (/Permission/i.test(name)) return new Refusal("PermissionDenied", "The credentials do not allow this request.");
  if (/Authentication Timeout/i.test(name)) return new Refusal("Unavailable", `${otherwise}.`); // one of the two is too busy
  if (/Authorization|expired/i.test(name)) return new Refusal("PermissionDenied", `${otherwise} (${err.message}).`);
  return new Refusal("Unavailable", `${otherwise}.`);
}
