// The page on which people sign in. Credentials come from a file or from the site's single sign-on, and stay in this
// page.
import { h, show } from "./dom.js";
import { failure } from "./parts.js";
import { claims, Site } from "./nats.js";
import { forget, sealed, seal, unseal } from "./seal.js";

/** signedOn asks for the credentials of the person who has signed on in this browser; undefined: nobody has in the last hour. */
const signedOn = () => fetch("sign-on/credentials", { method: "POST" }).then((r) => (r.status === 200 ? r.json() : undefined), () => undefined);

/** leaveSignOn ends the session of single sign-on. */
export const leaveSignOn = () => fetch("sign-on/leave", { method: "POST" }).catch(() => {});

// The provider sends the browser back to the first page. Until then the session storage keeps which page was open.
const wanted = "candor page";
const goSignOn = () => {
  sessionStorage.setItem(wanted, location.hash);
  location.assign("sign-on/begin");
};

/** login shows the page on which credentials are given, until they open a connection. */
export function login(main, target, opened, heard) {
  const text = h("textarea", { id: "creds", rows: "6", spellcheck: "false", autocomplete: "off", placeholder: "-----BEGIN NATS USER JWT-----" });
  const file = h("input", { type: "file", id: "file", accept: ".creds", onchange: async () => file.files[0] && use(await file.files[0].text()) });
  const keep = h("input", { type: "checkbox", id: "keep", onchange: () => { phrase.parentElement.hidden = !keep.checked; } });
  const phrase = h("input", { type: "password", id: "phrase", autocomplete: "new-password" });
  const open = h("input", { type: "password", id: "open", autocomplete: "current-password" });
  const said = h("div", { role: "status" });
  let turn = 0;
  async function use(creds, kept, lent) {
    const mine = ++turn;
    show(said, h("p", { class: "loading" }, "Connecting …"));
    // A site that does not answer is asked again, until other credentials are given.
    for (let again = true; again; again = again && mine === turn && forms.isConnected) {
      try {
        claims(creds);
        if (!kept && keep.checked && !phrase.value) throw Object.assign(new Error("Choose a passphrase, or do not keep the credentials"), { kind: "Invalid" });
        const site = await Site.connect(target, creds, heard);
        if (mine !== turn) return void site.close();
        if (!kept && keep.checked && phrase.value) await seal(target.site, creds, phrase.value);
        site.lent = lent;
        return opened(site);
      } catch (err) {
        if (mine !== turn) return;
        show(said, failure(err));
        again = err.passing;
        if (again) await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    }
  }

  const forms = h("div", { class: "login" },
    h("h1", {}, `Site ${target.site}`),
    target.sign_on && h("div", { class: "card" },
      h("h2", {}, "Sign in"),
      h("p", {}, `You sign in at ${target.sign_on}, and may see and do here what your account may, for an hour at a time.`),
      h("p", {}, h("button", { type: "button", id: "sign-on", onclick: goSignOn }, `Sign in at ${target.sign_on}`))),
    sealed(target.site) && h("form", { class: "card", onsubmit: async (event) => {
      event.preventDefault();
      try {
        await use(await unseal(target.site, open.value), true);
      } catch {
        show(said, failure({ kind: "Invalid", message: "The passphrase does not open the credentials that are kept here" }));
      }
    } },
    h("h2", {}, "Credentials that are kept here"),
    h("p", {}, h("label", { for: "open" }, "Passphrase"), open),
    h("p", { class: "row" }, h("button", { type: "submit" }, "Open"),
      h("button", { type: "button", class: "quiet", onclick: () => { forget(target.site); login(main, target, opened, heard); } }, "Remove them from this browser"))),
    h("form", { class: "card", onsubmit: (event) => { event.preventDefault(); use(text.value); } },
      h("h2", {}, "Connect with your credentials"),
      h("p", {}, "Drop your credentials file on this page, choose it, or paste it. ",
        "The credentials stay in this page: they sign the connection to the site, and are sent nowhere."),
      h("p", {}, h("label", { for: "file" }, "Credentials file"), file),
      h("p", {}, h("label", { for: "creds" }, "Or its text"), text),
      globalThis.crypto?.subtle && h("p", { class: "check" }, keep, h("label", { for: "keep" }, "Keep the credentials in this browser, sealed by a passphrase")),
      h("p", { hidden: true }, h("label", { for: "phrase" }, "New passphrase"), phrase),
      h("p", {}, h("button", { type: "submit" }, "Connect")),
      h("details", {}, h("summary", {}, "Where are my credentials?"),
        h("p", {}, "A site on your own machine has them in its state directory: ", h("code", {}, "~/.local/state/candor/creds/NAME.creds"),
          ". At another site an operator makes them: ", h("code", {}, "candor user creds NAME"), "."))),
    said);
  show(main);
  main.append(forms);
  if (target.sign_on) {
    signedOn().then((loan) => {
      if (!loan || turn || !forms.isConnected) return;
      const page = sessionStorage.getItem(wanted);
      sessionStorage.removeItem(wanted);
      if (page && !location.hash) history.replaceState(null, "", page);
      use(loan.creds, true, true);
    });
  }
  main.ondragover = (event) => { event.preventDefault(); forms.classList.add("over"); };
  main.ondragleave = () => forms.classList.remove("over");
  main.ondrop = async (event) => {
    event.preventDefault();
    forms.classList.remove("over");
    if (event.dataTransfer.files[0]) use(await event.dataTransfer.files[0].text());
  };
}
