// The settings of the server, and its figures over the last minutes.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { accessible, at, folder, hasPictures, open, picture, Server, sources, step } from "./harness.mjs";

export async function settings(browser) {
  step("settings: what is in effect, what differs, what waits for a start");
  const file = join(folder, "canopyd.toml");
  writeFileSync(file, "max_deadline = \"10m\"\n");
  const server = await new Server("settings", ["--config", file, "--queue-length", "77"]).start();
  const page = await open(browser, server);
  await at(page, server, "#/settings");
  const rows = page.getByRole("region", { name: "Every setting" }).locator("tbody tr");
  await rows.first().waitFor();
  const row = (name) => rows.filter({ has: page.locator("code", { hasText: new RegExp(`^${name}$`) }) });
  assert.match(await row("queue_length").textContent(), /set77.*1024/);
  assert.match(await row("store_bytes").textContent(), /4294967296.*4\.00 GiB/);
  assert.match(await row("tls_key").textContent(), /–none/);
  assert.match(await row("log").textContent(), /after a reload/);
  await accessible(page, "settings");
  await page.getByLabel("Show").selectOption({ label: "those that differ from their default" });
  await page.waitForURL(/which=own/);
  assert.deepEqual((await rows.locator("td:first-child code").allTextContents()).sort(), ["dev", "log_format", "max_deadline", "queue_length"]);
  step("  a file that has changed");
  writeFileSync(file, "max_deadline = \"20m\"\n");
  await page.getByText("The next start reads this setting otherwise").waitFor();
  await row("max_deadline").getByText("waits for a start").waitFor();
  await picture(page, "settings");
  await page.getByLabel("Show").selectOption({ label: "those that wait for the next start" });
  await row("max_deadline").waitFor();
  assert.equal(await rows.count(), 1);
  await page.getByLabel("Find").fill("banana");
  await page.keyboard.press("Enter");
  await page.locator(".empty", { hasText: "No setting matches" }).waitFor();
  writeFileSync(file, "max_deadline = 1\n");
  await page.getByText("would not start again").waitFor();
  await accessible(page, "settings that no start takes");
  await page.context().close();
  await server.kill();
}

const BEFORE = `# TYPE canopy_plan_latency_seconds histogram
canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="0.001"} 1
canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="0.01"} 1
canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="+Inf"} 1
canopy_plan_requests_total{collective="a,b}",outcome="ok"} 4`;
const NOW = `canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="0.001"} 11
canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="0.01"} 15
canopy_plan_latency_seconds_bucket{cache="hit",size_class="le16",le="+Inf"} 16
canopy_plan_latency_seconds_bucket{cache="miss",size_class="le128",le="0.001"} 0
canopy_plan_latency_seconds_bucket{cache="miss",size_class="le128",le="0.01"} 5
canopy_plan_latency_seconds_bucket{cache="miss",size_class="le128",le="+Inf"} 5
canopy_plan_requests_total{collective="a,b}",outcome="ok"} 1.4e1
canopy_plan_requests_total{collective="c",outcome="deadline"} 2`;

/** Quantiles are those that \`canopy tools top\` shows for the same metrics. */
export async function quantiles() {
  step("quantiles and rates from metrics");
  const { Metrics } = await sources("metrics.ts");
  const [before, now] = [new Metrics(BEFORE, 0), new Metrics(NOW, 2000)];
  const of = (part) => now.quantile(before, "canopy_plan_latency_seconds", part);
  // 10 of 20 took at most a millisecond, 19 at most ten.
  assert.deepEqual([of(0.5), of(0.25), of(0.99)], [0.001, 0.0005, 0.01]);
  assert.ok(Math.abs(of(0.9) - (0.001 + (0.009 * 8) / 9)) < 1e-12);
  assert.equal(now.quantile(now, "canopy_plan_latency_seconds", 0.5), undefined);
  assert.deepEqual([now.rate(before, "canopy_plan_requests_total", { outcome: "ok" }), now.rate(before, "canopy_none")], [5, 0]);
  assert.deepEqual(now.labelsOf("canopy_plan_requests_total", "outcome"), ["deadline", "ok"]);
}

export async function live(page, server) {
  step("figures of the last minutes");
  await at(page, server, "#/");
  const series = (label) => page.getByRole("img", { name: new RegExp(`^${label}, last two minutes`) });
  await series("Waiting jobs").waitFor();
  await page.getByRole("img", { name: /^Plans in the cache, last two minutes: [1-9][\d.]* [KM]iB now/ }).waitFor();
  // Requests while the page is open.
  for (let seed = 1; seed <= (hasPictures ? 60 : 12); seed++) {
    if (seed % 4) server.plan("ring:8", "allgather");
    else server.plan(`random-regular:n=${12 + 2 * (seed % 8)},d=3,seed=${seed}`, "reduce-scatter");
    await page.waitForTimeout(seed % 5 ? 100 : 2000);
  }
  await page.getByRole("img", { name: /^Requests for plans: ok, last two minutes: .*most 0?\.?[1-9]/ }).waitFor();
  await page.getByRole("img", { name: /^Time to a plan, p50, last two minutes: [\d.]+ m?s now/ }).waitFor();
  await page.getByRole("img", { name: /^Time to a plan, p99, last two minutes: [\d.]+ m?s now/ }).waitFor();
  await page.locator(".series polyline").first().waitFor({ state: "attached" });
  await accessible(page, "figures of the last minutes");
  await page.evaluate(() => document.activeElement.blur());
  await picture(page, "overview");
}
