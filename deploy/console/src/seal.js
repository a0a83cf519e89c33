// Credentials that are kept in the browser, sealed by a passphrase: AES-GCM under a key of
// PBKDF2. Without the passphrase they are noise.
const place = (site) => `candor credentials of ${site}`;
const rounds = 600000;

export const sealed = (site) => Boolean(globalThis.crypto?.subtle && localStorage.getItem(place(site)));
export const forget = (site) => localStorage.removeItem(place(site));

async function keyOf(phrase, salt) {
  const base = await crypto.subtle.importKey("raw", new TextEncoder().encode(phrase), "PBKDF2", false, ["deriveKey"]);
  return crypto.subtle.deriveKey({ name: "PBKDF2", hash: "SHA-256", salt, iterations: rounds }, base, { name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
}

const text = (bytes) => btoa(String.fromCharCode(...bytes));
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export async function seal(site, creds, phrase) {
  const salt = crypto.getRandomValues(new Uint8Array(16)), iv = crypto.getRandomValues(new Uint8Array(12));
  const data = await crypto.subtle.encrypt({ name: "AES-GCM", iv }, await keyOf(phrase, salt), new TextEncoder().encode(creds));
  localStorage.setItem(place(site), JSON.stringify({ salt: text(salt), iv: text(iv), data: text(new Uint8Array(data)) }));
}

export async function unseal(site, phrase) {
  const { salt, iv, data } = JSON.parse(localStorage.getItem(place(site)));
  const key = await keyOf(phrase, bytes(salt));
  return new TextDecoder().decode(await crypto.subtle.decrypt({ name: "AES-GCM", iv: bytes(iv) }, key, bytes(data)));
}
