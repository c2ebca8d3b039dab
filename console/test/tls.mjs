// The console over TLS: with a client certificate, without one, and with one of a stranger.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, at, folder, open, run, Server, step } from "./harness.mjs";

const openssl = (...words) => execFileSync("openssl", words, { stdio: ["ignore", "pipe", "pipe"] });

/** An authority in a folder of its own, which signs certificates. */
class Authority {
  constructor(name) {
    this.folder = join(folder, name);
    mkdirSync(this.folder);
    [this.certificate, this.key] = [join(this.folder, "ca.pem"), join(this.folder, "ca.key")];
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", `/CN=${name}`, "-addext", "keyUsage=critical,keyCertSign", "-keyout", this.key, "-out", this.certificate);
  }
  /** A certificate for a subject, with these extensions. */
  signs(subject, ...extensions) {
    const [certificate, key, request, more] = ["pem", "key", "csr", "ext"].map((end) => join(this.folder, `${subject}.${end}`));
    writeFileSync(more, `basicConstraints=CA:FALSE\n${extensions.join("\n")}\n`);
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${subject}`, "-keyout", key, "-out", request);
    openssl("x509", "-req", "-in", request, "-CA", this.certificate, "-CAkey", this.key, "-CAcreateserial", "-days", "2", "-extfile", more, "-out", certificate);
    chmodSync(key, 0o600);
    return { certificate, key };
  }
}

/** A context that shows a certificate, or none. */
function showing(server, shown) {
  const clientCertificates = shown ? [{ origin: new URL(server.page).origin, certPath: shown.certificate, keyPath: shown.key }] : [];
  // The authority is one of this test: no browser knows it.
  return { ignoreHTTPSErrors: true, clientCertificates };
}

async function visits(browser, server, name, operator) {
  step("  with a client certificate: every page");
  const page = await open(browser, server, showing(server, operator));
  for (const [hash, text] of [["#/", "Health"], ["#/plans", "ring:8"], [`#/${name}`, "What limits it"], [`#/${name}?view=links`, "Busiest links"], ["#/jobs", "succeeded"], ["#/clusters", "Topologies"], ["#/faults", "No faults"], ["#/leases", "watching"], ["#/settings", "tls_client_ca"], ["#/audit", "cn:console"]]) {
    await at(page, server, hash);
    await page.locator("main").getByText(text).filter({ visible: true }).first().waitFor();
  }
  await page.locator(".caller", { hasText: "cn:console" }).waitFor();
  await page.getByRole("checkbox", { name: "Actions" }).check();
  await at(page, server, `#/${name}`);
  await page.getByRole("button", { name: "Pin the plan" }).click();
  await page.getByRole("button", { name: "Pin it" }).click();
  await page.locator(".subject .badge", { hasText: "pinned" }).waitFor();
  await page.context().close();
}

async function isRefused(browser, server, shown, what) {
  step(`  ${what}: the files load, and no call is answered`);
  const page = await open(browser, server, showing(server, shown));
  await at(page, server, "#/plans");
  await page.getByText("This server asks who you are").waitFor();
  assert.equal(await page.getByText("ring:8").count(), 0);
  await accessible(page, what);
  await page.context().close();
}

export async function overTls(browser) {
  step("TLS and client certificates");
  const [own, foreign] = [new Authority("own"), new Authority("foreign")];
  const served = own.signs("server", "subjectAltName=IP:127.0.0.1,DNS:localhost", "extendedKeyUsage=serverAuth");
  const [operator, unknown] = ["console", "unknown"].map((subject) => own.signs(subject, "extendedKeyUsage=clientAuth"));
  const stranger = foreign.signs("console", "extendedKeyUsage=clientAuth");
  const rules = join(folder, "tls-access.toml");
  writeFileSync(rules, '[[grant]]\ncertificate = "cn:console"\nroles = ["operator"]\n', { mode: 0o600 });
  const flags = ["--access", rules, "--tls-certificate", served.certificate, "--tls-key", served.key, "--tls-client-ca", own.certificate];
  const server = await new Server("tls", flags, { base: [], scheme: "https" }).start();
  const name = server.plan("ring:8", "allgather");
  await visits(browser, server, name, operator);
  const shown = ["--server", `https://${server.ports[0]}`, "--ca", own.certificate, "--cert", operator.certificate, "--key", operator.key];
  const listed = run("plans", "list", "--filter", "pinned=true", ...shown);
  assert.ok(listed.status === 0 && listed.said.includes(name.slice(6, 18)), listed.said);
  await isRefused(browser, server, undefined, "without a certificate");
  await isRefused(browser, server, unknown, "with a certificate that no rule knows");
  step("  with a certificate of a foreign authority: no connection");
  const page = await open(browser, server, showing(server, stranger));
  const problem = await at(page, server, "#/plans").then(() => page.locator("body").innerText(), (error) => error.message);
  assert.match(problem, /ERR_|certificate|TLS|SSL/i);
  assert.equal(await page.locator("#console").count(), 0, "not even the files load");
  await page.context().close();
  await server.kill();
}
