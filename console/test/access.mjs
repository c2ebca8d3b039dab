// Callers with tokens: they sign in, see what their role may see, and read why it may not do the rest.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { asked, longJob } from "./actions.mjs";
import { accessible, at, folder, open, run, Server, step } from "./harness.mjs";

/** A file with a token of this role. */
function tokenOf(role, tokens) {
  const path = join(folder, `token-${role}`);
  const { status, said } = run("tokens", "create", `a-${role}`, "--role", role, "--tokens", tokens, "-o", path);
  assert.equal(status, 0, said);
  return readFileSync(path, "utf8").trim();
}

async function signIn(page, server, name, token) {
  step("sign in with a token");
  await at(page, server, `#/${name}`);
  await page.getByText("This server asks who you are").waitFor();
  await accessible(page, "sign-in");
  await page.getByLabel("Token", { exact: true }).fill("cnpy_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not accept this token").waitFor();
  await page.getByLabel("Token", { exact: true }).fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "What limits it" }).waitFor();
  assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
}

/** An action that the role lacks: the question says so, and nothing changes. */
async function refused(page, server, hash, label, confirm) {
  await at(page, server, hash);
  const dialog = await asked(page, label);
  await dialog.getByRole("button", { name: confirm, exact: true }).click();
  await dialog.getByRole("alert").getByText("METHOD_NOT_ALLOWED").waitFor();
  await dialog.getByText("Ask an admin for a role that may do this").waitFor();
  await dialog.getByRole("button", { name: "Keep as it is" }).click();
}

export async function roles(browser) {
  step("access rules: tokens, their roles, and refusals in words");
  const rules = join(folder, "access.toml");
  const tokens = join(folder, "tokens.json");
  writeFileSync(rules, '[[grant]]\nuser = 4242\nroles = ["viewer"]\n', { mode: 0o600 });
  const [viewer, operator] = ["viewer", "operator"].map((role) => tokenOf(role, tokens));
  const server = await new Server("guarded", ["--access", rules, "--tokens", tokens]).start();
  const name = server.plan("ring:4", "allgather");
  server.cli("faults", "report", "dgx-a100:boxes=2", "nic:b0g3");
  server.cli("fetch", "dgx-a100:boxes=2", "--job", "44", "--collective", "allgather", "--lease", "2h", "--out", join(folder, "job44"));
  const lease = /leases\/\w+/.exec(server.cli("leases", "list"))[0];
  const job = await longJob(server);
  const page = await open(browser, server);
  await signIn(page, server, name, viewer);
  await page.getByRole("checkbox", { name: "Actions" }).check();
  step("a viewer may change nothing");
  await refused(page, server, `#/${name}`, "Pin the plan", "Pin it");
  await refused(page, server, `#/${name}`, "Evict the plan", "Evict it");
  await refused(page, server, `#/jobs/${job.name.split("/")[1]}`, "Cancel the job", "Cancel it");
  await refused(page, server, "#/faults", "Clear the fault", "Clear it");
  await refused(page, server, `#/${lease}`, "Release the lease", "Release it");
  await refused(page, server, "#/", "Drain the server", "Drain it");
  await at(page, server, "#/settings");
  await page.getByRole("alert").filter({ hasText: "METHOD_NOT_ALLOWED" }).waitFor();
  await accessible(page, "settings of somebody who may not see them");
  assert.equal(await page.getByRole("button", { name: "Change the log filter" }).count(), 0, "what is not seen is not changed");
  step("an operator may, but not everything");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token", { exact: true }).fill(operator);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("region", { name: "Every setting" }).waitFor();
  await refused(page, server, "#/settings", "Change the log filter", "Change it");
  await refused(page, server, "#/", "Drain the server", "Drain it");
  step("nothing has changed");
  const said = ["plans", "faults", "leases", "jobs"].map((what) => server.cli(what, "list")).join("");
  for (const kept of [name.slice(6, 18), "nic:b0g3", lease, `${job.name.split("/")[1]} +running`]) assert.match(said, new RegExp(kept));
  await at(page, server, `#/${name}`);
  const dialog = await asked(page, "Pin the plan");
  await dialog.getByRole("button", { name: "Pin it" }).click();
  await page.locator(".subject .badge", { hasText: "pinned" }).waitFor();
  await page.context().close();
  await job.gone();
  await server.kill();
}
