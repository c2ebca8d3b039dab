// Every action of the console: offered when asked for, done when confirmed, seen on the page and by the command line.
import assert from "node:assert/strict";
import { join } from "node:path";
import { accessible, at, folder, open, Server, step } from "./harness.mjs";

/** A search that takes minutes. */
const LONG = ["plan", "random-regular:n=1500,d=4,seed=1", "--collective", "all-to-all", "--deadline", "10m", "-o", join(folder, "long.json")];
const PATIENCE_MS = 20_000;

/** Asks again until something is so. */
export async function until(what, is) {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 100))) {
    if (is()) return;
  }
  assert.fail(`not in time: ${what}`);
}

/** A job that runs; without the command that waits for it, it ends. */
export async function longJob(server) {
  const command = server.begins(...LONG);
  let name;
  await until("a running job", () => (name = /^(\S+) +running/m.exec(server.cli("jobs", "list"))?.[1]));
  const gone = () => (command.process.kill("SIGKILL"), command.ended);
  return { name: `operations/${name}`, gone };
}

/** The dialog of an action, once its button was pressed. */
export async function asked(page, label) {
  await page.getByRole("button", { name: label, exact: true }).first().click();
  const dialog = page.getByRole("dialog", { name: `${label}?` });
  await dialog.waitFor();
  return dialog;
}

/** First decides against an action, then confirms it. */
async function act(page, label, confirm, isUnchanged) {
  const dialog = await asked(page, label);
  await accessible(page, `the question of ${label}`);
  await dialog.getByRole("button", { name: "Keep as it is" }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.ok(isUnchanged(), `${label}: nothing happens without confirmation`);
  // By the keyboard alone.
  await page.getByRole("button", { name: label, exact: true }).first().focus();
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await dialog.getByRole("button", { name: confirm, exact: true }).focus();
  await page.keyboard.press("Enter");
}

async function cancel(page, server) {
  step("  cancel a job");
  const job = await longJob(server);
  await at(page, server, `#/jobs/${job.name.split("/")[1]}`);
  await page.locator(".subject .badge", { hasText: "running" }).waitFor();
  const watcher = server.begins("jobs", "watch", job.name);
  await act(page, "Cancel the job", "Cancel it", () => /running/.test(server.cli("jobs", "list")));
  await page.locator(".subject .badge", { hasText: "cancelled" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Cancel the job" }).count(), 0, "an ended job has no such action");
  assert.match(server.cli("jobs", "list"), new RegExp(`${job.name.split("/")[1]} +cancelled`));
  const { status, said } = await watcher.ended;
  assert.ok(status !== 0 && /cancel/i.test(said), said);
  await job.gone();
}

async function clear(page, server) {
  step("  clear a fault");
  server.cli("faults", "report", "dgx-a100:boxes=2", "nic:b0g3", "gpu:b1g2");
  await at(page, server, "#/faults");
  const rows = page.getByRole("region", { name: "Faults" }).locator("tbody tr");
  const row = rows.filter({ hasText: "nic:b0g3" });
  await row.waitFor();
  assert.equal(await rows.count(), 2);
  await row.getByRole("button", { name: "Clear the fault" }).click();
  await row.getByRole("button", { name: "Keep as it is" }).click();
  assert.match(server.cli("faults", "list"), /nic:b0g3/);
  await row.getByRole("button", { name: "Clear the fault" }).click();
  await row.getByRole("button", { name: "Clear it" }).click();
  await row.waitFor({ state: "detached" });
  const left = server.cli("faults", "list");
  assert.ok(!left.includes("nic:b0g3") && left.includes("gpu:b1g2"), left);
}

async function pinAndEvict(page, server) {
  step("  pin, unpin and evict a plan");
  const name = server.plan("ring:6", "allgather");
  const pinned = () => JSON.parse(server.cli("plans", "list", "--json")).plans.find(({ plan }) => plan === name)?.pinned;
  assert.equal(pinned(), false);
  await at(page, server, `#/${name}`);
  await act(page, "Pin the plan", "Pin it", () => pinned() === false);
  await page.locator(".subject .badge", { hasText: "pinned" }).waitFor();
  assert.equal(pinned(), true);
  const dialog = await asked(page, "Evict the plan");
  await dialog.getByRole("button", { name: "Evict it" }).click();
  await dialog.getByText("unpin it first").waitFor();
  await dialog.getByRole("button", { name: "Keep as it is" }).click();
  assert.equal(pinned(), true);
  await act(page, "Unpin the plan", "Unpin it", () => pinned() === true);
  await page.locator(".subject .badge", { hasText: "pinned" }).waitFor({ state: "detached" });
  assert.equal(pinned(), false);
  await act(page, "Evict the plan", "Evict it", () => pinned() === false);
  await page.getByRole("heading", { level: 1, name: "Plans" }).waitFor();
  assert.equal(pinned(), undefined, "it has left the cache");
  await at(page, server, `#/${name}`);
  await page.getByRole("alert").filter({ hasText: "PLAN_UNKNOWN" }).waitFor();
}

async function release(page, server) {
  step("  release a lease");
  server.cli("fetch", "dgx-a100:boxes=2", "--job", "31", "--collective", "allgather", "--lease", "2h", "--out", join(folder, "job31"));
  await at(page, server, "#/leases");
  await page.getByRole("region", { name: "Leases" }).getByRole("link", { name: "31", exact: true }).click();
  await act(page, "Release the lease", "Release it", () => /\b31\b/.test(server.cli("leases", "list")));
  await page.locator(".empty", { hasText: "No job holds a lease" }).waitFor();
  assert.doesNotMatch(server.cli("leases", "list"), /leases\/\w+/);
}

async function logFilter(page, server) {
  step("  change the log filter for a while, and reload");
  const inEffect = () => JSON.parse(server.cli("config", "--json")).log_filter;
  const before = inEffect();
  await at(page, server, "#/settings");
  await page.getByLabel("New filter").fill("warn,canopy_server=loud");
  const dialog = await asked(page, "Change the log filter");
  await dialog.getByRole("button", { name: "Change it" }).click();
  await dialog.getByText("INVALID_ARGUMENT").waitFor();
  await dialog.getByRole("button", { name: "Keep as it is" }).click();
  await page.getByLabel("New filter").fill("warn,canopy_server=debug");
  await act(page, "Change the log filter", "Change it", () => inEffect() === before);
  await page.getByText("differs from the setting").waitFor();
  await page.getByText(`The filter was ${before}`).waitFor();
  assert.equal(inEffect(), "warn,canopy_server=debug");
  await act(page, "Reload the configuration", "Reload it", () => inEffect() !== before);
  await page.getByText("differs from the setting").waitFor({ state: "detached" });
  assert.equal(inEffect(), before);
}

async function drain(page, server) {
  step("  drain the server, with a job that runs");
  const job = await longJob(server);
  await at(page, server, "#/");
  await act(page, "Drain the server", "Drain it", () => !/draining/.test(server.cli("stats")));
  await page.locator(".figure", { hasText: "Health" }).getByText("draining").waitFor();
  await accessible(page, "a server that drains");
  assert.match(server.cli("stats"), /draining/i);
  const refused = server.tries("plan", "ring:5", "--collective", "allgather", "--deadline", "2s", "-o", join(folder, "none.json"));
  assert.ok(refused.status !== 0 && /drain|shut/i.test(refused.said), refused.said);
  await job.gone();
  await server.ended;
  await page.locator(".figure", { hasText: "Health" }).getByText("no answer").waitFor();
}

export async function everyAction(browser) {
  step("every action: not offered, not done without confirmation, done, seen by the command line");
  const server = await new Server("actions", ["--allow-loopback-drain", "--drain-timeout", "60s"]).start();
  const page = await open(browser, server);
  const plan = server.plan("ring:7", "allgather");
  for (const hash of ["#/", `#/${plan}`, "#/settings"]) {
    await at(page, server, hash);
    await page.locator("main section").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /^(Drain|Pin|Evict|Change|Reload)/ }).count(), 0, `${hash}: no action unless asked for`);
  }
  await page.getByRole("checkbox", { name: "Actions" }).check();
  await cancel(page, server);
  await clear(page, server);
  await pinAndEvict(page, server);
  await release(page, server);
  await logFilter(page, server);
  await drain(page, server);
  await page.context().close();
}
