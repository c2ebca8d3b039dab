// Visits every page of the console in a browser, as a person would: node test.mjs CANOPYD CANOPY [FOLDER FOR PICTURES]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { roles } from "./test/access.mjs";
import { everyAction } from "./test/actions.mjs";
import { at, accessible, cleanUp, faults, folder, open, picture, Server, sources, step } from "./test/harness.mjs";
import { chosenLink } from "./test/links.mjs";
import { faultsOnTheMap, uplinksOnTheMap } from "./test/map.mjs";
import { sharedDatabase } from "./test/servers.mjs";
import { live as figures, quantiles, settings } from "./test/settings.mjs";
import { overTls } from "./test/tls.mjs";

/** Longest time from a click to what it shows, at 1,024 ranks. */
const INTERACTION_MS = 100;
/** Longest time to the first paint. */
const PAINT_MS = 1000;

async function emptyPages(page, server) {
  step("empty states");
  for (const [hash, text] of [["plans", "The cache is empty"], ["jobs", "No job has run"], ["faults", "No faults are known"], ["leases", "No job holds a lease"], ["clusters", "No cluster is stored"]]) {
    await at(page, server, `#/${hash}`);
    await page.locator(".empty", { hasText: text }).waitFor();
    await accessible(page, `${hash}, empty`);
  }
  await at(page, server, "#/plans/0123abcd0123abcd0123abcd0123abcd");
  await page.getByRole("alert").filter({ hasText: "PLAN_UNKNOWN" }).waitFor();
  await at(page, server, "#/nowhere");
  await page.getByText("This page does not exist").waitFor();
}

async function firstPaint(page, server) {
  step("first paint");
  await at(page, server, "");
  await page.getByText("Health").waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  process.stdout.write(`  ${Math.round(paint)} ms\n`);
  assert.ok(paint <= PAINT_MS, `first paint after ${paint} ms`);
}

async function overview(page, server) {
  step("overview");
  await at(page, server, "#/");
  await page.locator(".figure", { hasText: "Health" }).getByText("ready").waitFor();
  await page.locator(".figure", { hasText: "Faults" }).getByText("2", { exact: true }).waitFor();
  await page.getByRole("cell", { name: "job-start" }).waitFor();
  await accessible(page, "overview");
  // By the keyboard alone.
  await page.getByRole("link", { name: "Plans", exact: true }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Plans" }).waitFor();
}

async function plans(page, server) {
  step("plans: filter, order, compare");
  await at(page, server, "#/plans");
  const rows = page.getByRole("region", { name: "Plans" }).locator("tbody tr");
  await rows.first().waitFor();
  const all = await rows.count();
  assert.ok(all >= 6, `${all} plans`);
  await page.getByLabel("Filter").fill("ranks>=64");
  await page.keyboard.press("Enter");
  await page.waitForURL(/filter=ranks/);
  await page.locator(".pages", { hasText: "1 plan" }).waitFor();
  await page.getByLabel("Filter").fill("ranks>=");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "INVALID_ARGUMENT" }).waitFor();
  await at(page, server, "#/plans?collective=allgather");
  await page.getByRole("button", { name: "Ranks" }).click();
  await page.locator("th[aria-sort=ascending]", { hasText: "Ranks" }).waitFor();
  await page.getByRole("button", { name: "Ranks" }).click();
  await page.locator("th[aria-sort=descending]", { hasText: "Ranks" }).waitFor();
  await accessible(page, "plans");
  await picture(page, "plans");
  await rows.nth(0).getByRole("checkbox").check();
  await rows.nth(1).getByRole("checkbox").check();
  await page.getByRole("link", { name: "Compare two plans" }).click();
  await page.locator("tr.differs").first().waitFor();
  await page.getByText(/times as fast as|the same rate/).waitFor();
  await accessible(page, "compare");
}

async function onePlan(page, server, name, { trees, steps }) {
  await at(page, server, `#/${name}`);
  await page.getByRole("heading", { name: "What limits it" }).waitFor();
  await page.getByText("no schedule exceeds").or(page.locator(".limit-words")).first().waitFor();
  await accessible(page, `${name}`);
  await page.getByRole("link", { name: "Links", exact: true }).click();
  await page.locator("svg.network").waitFor();
  assert.ok(Number(await page.locator("svg.network").getAttribute("data-nodes")) > 1);
  assert.equal(await page.locator("td", { hasText: "100 %" }).count() > 0, true, "one link is the busiest");
  await accessible(page, `links of ${name}`);
  await page.getByRole("link", { name: "Trees", exact: true }).click();
  if (trees) await page.locator("svg.tree path").first().waitFor();
  else await page.locator(".empty", { hasText: steps ? "in steps" : "in paths" }).waitFor();
  await accessible(page, `trees of ${name}`);
  await page.getByRole("link", { name: "Steps", exact: true }).click();
  await page.locator("svg.steps rect").first().waitFor();
  await accessible(page, `steps of ${name}`);
}

async function simulated(page, server, name) {
  step("a plan in simulation: rates by size, busy links, sizes in the address");
  await at(page, server, `#/${name}`);
  await page.getByRole("link", { name: "Simulated", exact: true }).click();
  await page.locator("svg.curve polyline").waitFor();
  assert.equal(await page.locator("svg.curve circle").count(), 10);
  assert.equal(await page.getByRole("region", { name: "Rates by size" }).locator("tbody tr").count(), 10);
  await page.locator("svg.timeline rect.cell").first().waitFor();
  assert.equal(await page.getByRole("region", { name: "Busiest links" }).locator("tbody tr").count(), 32);
  await page.getByRole("cell", { name: "on it" }).first().waitFor();
  await accessible(page, `simulation of ${name}`);
  await page.getByRole("link", { name: "1.00 MiB", exact: true }).click();
  await page.waitForURL(/size=1048576/);
  await page.locator("svg.curve circle.chosen title", { hasText: "1.00 MiB" }).waitFor({ state: "attached" });
  await page.locator("svg.timeline rect.cell").first().waitFor();
  await at(page, server, `#/${name}?view=simulated&size=100000`);
  await page.locator("svg.timeline rect.cell").first().waitFor();
  assert.equal(await page.getByRole("combobox", { name: "Message size" }).inputValue(), "100000");
  await at(page, server, `#/${name}?view=simulated&size=9999999999999`);
  await page.getByRole("alert").filter({ hasText: "SIMULATION_INVALID" }).waitFor();
  await at(page, server, `#/${name}?view=simulated&size=much`);
  await page.locator(".empty", { hasText: "not a number of bytes" }).waitFor();
  const runtimeOnly = server.plan("ring:4", "allgather", "--format", "msccl-xml");
  await at(page, server, `#/${runtimeOnly}?view=simulated`);
  await page.locator(".empty", { hasText: "needs the plan's JSON file" }).waitFor();
}

async function large(page, server, name) {
  step("a plan of 1,024 ranks");
  await at(page, server, `#/${name}?view=links`);
  await page.locator("svg.network").waitFor();
  // From the event to the frame after what it changed.
  const spent = await page.evaluate(async () => {
    const spots = document.querySelectorAll("svg.network g[data-node]");
    const times = [];
    for (const spot of [spots[7], spots[500], spots[1023]]) {
      const from = performance.now();
      spot.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      times.push(performance.now() - from);
    }
    return times;
  });
  process.stdout.write(`  ${spent.map((time) => Math.round(time)).join(", ")} ms from a click to its frame\n`);
  assert.ok(spent.sort((a, b) => a - b)[1] <= INTERACTION_MS, `clicks took ${spent} ms`);
  await page.getByRole("link", { name: "Trees", exact: true }).click();
  await page.locator("svg.tree path").first().waitFor();
  assert.equal(await page.locator("svg.tree circle").count(), 1024);
}

async function clusters(page, server) {
  step("clusters: map, faults, what-if");
  await at(page, server, "#/clusters");
  await page.getByRole("link", { name: "clusters/prod" }).click();
  await page.locator("svg.network line.broken").first().waitFor();
  await page.getByRole("cell", { name: "link:b0g3=ib", exact: true }).waitFor();
  await page.getByRole("button", { name: "Rank single faults" }).click();
  await page.getByRole("region", { name: "Single faults" }).locator("tbody tr").first().waitFor();
  await page.getByText("Without another fault").waitFor();
  await accessible(page, "cluster");
  await page.evaluate(() => scrollTo(0, 0));
  await picture(page, "cluster");
}

async function live(page, server) {
  step("leases: a new plan appears by itself");
  await at(page, server, "#/leases");
  await page.getByText("watching").waitFor();
  await page.getByRole("region", { name: "Leases" }).getByRole("link", { name: "18", exact: true }).waitFor();
  // The stream begins when the server has the call.
  await page.waitForTimeout(500);
  server.cli("faults", "report", "dgx-a100:boxes=2", "nic:b0g3");
  await page.locator(".events li", { hasText: "replaces" }).first().waitFor();
  await page.getByText("replaced").first().waitFor();
  await accessible(page, "leases");
  await picture(page, "leases");
  await page.getByRole("link", { name: "18", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "Lease" }).waitFor();
  await page.getByRole("region", { name: "Plans of the lease" }).waitFor();
  await at(page, server, "#/faults");
  await page.getByRole("cell", { name: /nic:b0g3/ }).waitFor();
  await accessible(page, "faults");
}

async function jobs(page, server) {
  step("jobs: a new one appears by itself");
  await at(page, server, "#/jobs");
  const rows = page.getByRole("region", { name: "Jobs" }).locator("tbody tr");
  await rows.first().waitFor();
  const before = await rows.count();
  server.plan("ring:9", "broadcast");
  await page.waitForFunction((count) => document.querySelectorAll("tbody tr").length > count, before);
  await accessible(page, "jobs");
  await rows.first().getByRole("link").first().click();
  await page.getByText("The job made").waitFor();
  await accessible(page, "job");
}

async function gone(page, server) {
  step("error state: the server is killed, and comes back");
  await at(page, server, "#/");
  await page.getByText("Health").waitFor();
  await server.kill();
  await page.getByRole("alert").filter({ hasText: "does not answer" }).first().waitFor();
  await page.locator(".figure", { hasText: "Health" }).getByText("no answer").waitFor();
  await accessible(page, "overview without a server");
  await server.start();
  await page.locator(".figure", { hasText: "Health" }).getByText("ready").waitFor();
}

async function dark(browser, server, name) {
  step("dark mode");
  const page = await open(browser, server, { colorScheme: "dark" });
  for (const hash of ["#/", "#/plans", `#/${name}`, `#/${name}?view=links`, "#/clusters/prod", "#/leases", "#/faults", "#/jobs", "#/settings", "#/audit", `#/${name}?view=trees`, `#/${name}?view=links&link=b0g0%3Eb0nv`]) {
    await at(page, server, hash);
    await page.locator("main section, main table, main svg").first().waitFor();
    await accessible(page, `${hash}, dark`);
  }
  await page.context().close();
}

/** What the drawings show must be what the server has checked: the busiest link gives the rate that the plan states. */
async function loads(server) {
  step("loads of links give the rates of plans");
  const { read } = await sources("reader.ts");
  const { usesOf } = await sources("uses.ts");
  for (const [network, collective, ...more] of [
    ["dgx-a100:boxes=2", "allgather"],
    ["dgx-h100:boxes=2", "allreduce"],
    ["torus:4x3", "reduce-scatter"],
    ["hypercube:3", "broadcast"],
    ["torus:3x3", "all-to-all"],
    ["ring:7", "all-to-all"],
    ["torus:3x3", "allgather", "--algorithm", "bfb"],
  ]) {
    server.plan(network, collective, ...more);
    const { model, traffic, file } = read(readFileSync(join(folder, "plan.json"), "utf8"));
    const ranks = model.nodes.filter(({ rank }) => rank !== null).length;
    const parts = file.chunks_per_share * (collective === "broadcast" ? 1 : ranks);
    const rate = Math.min(...model.links.map(({ bandwidth }, at) => (parts * bandwidth) / traffic.onLink[at]));
    const [numerator, denominator] = file.achieved.algbw.split("/");
    const stated = Number(numerator) / Number(denominator ?? 1);
    // Steps wait for each other, so that links may be idle.
    const isRight = file.schedule.shape === "steps" ? rate >= stated * 0.999999 : Math.abs(rate / stated - 1) < 1e-6;
    // What uses a link adds up to its load.
    for (const { from, to } of model.links) {
      const { total, uses, bySteps } = usesOf(file, traffic, from, to);
      const load = model.links.reduce((sum, link, at) => sum + (link.from === from && link.to === to ? traffic.onLink[at] : 0), 0);
      for (const sum of [total, uses.reduce((sum, { amount }) => sum + amount, 0), bySteps.reduce((a, b) => a + b, 0)]) assert.equal(sum, load, `${network} ${collective}: ${from} to ${to}`);
    }
    assert.ok(isRight, `${network} ${collective}: ${rate} on links, ${stated} stated`);
  }
}

async function main() {
  const server = await new Server("open").start();
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  try {
    const page = await open(browser, server);
    await firstPaint(page, server);
    await emptyPages(page, server);
    await loads(server);
    await quantiles();
    step("plans, faults and leases by the command line");
    const trees = server.plan("dgx-a100:boxes=2", "allgather");
    const both = server.plan("dgx-a100:boxes=2", "allreduce");
    const inSteps = server.plan("torus:3x3", "allgather", "--algorithm", "bfb");
    const paths = server.plan("torus:3x3", "all-to-all");
    server.plan("ring:8", "allgather");
    const big = server.plan("dgx-h100:boxes=128", "allgather");
    server.cli("cluster", "put", "prod", "--network", "dgx-h100:boxes=4");
    server.cli("faults", "report", "clusters/prod", "link:b0g3-ib", "link:b2g1-ib*1/2");
    server.cli("fetch", "dgx-a100:boxes=2", "--job", "18", "--collective", "allgather", "--lease", "2h", "--out", join(folder, "job"));
    await overview(page, server);
    await figures(page, server);
    await plans(page, server);
    step("one plan: trees, steps, paths");
    await onePlan(page, server, trees, { trees: true });
    await at(page, server, `#/${trees}?view=links`);
    await page.locator("svg.network").waitFor();
    await picture(page, "plan");
    await onePlan(page, server, both, { trees: true });
    await onePlan(page, server, inSteps, { steps: true });
    await onePlan(page, server, paths, {});
    await simulated(page, server, trees);
    await large(page, server, big);
    await chosenLink(page, server, { trees, inSteps, paths, big });
    await clusters(page, server);
    await live(page, server);
    await jobs(page, server);
    await at(page, server, "#/audit");
    await page.getByText("anybody").first().waitFor();
    await accessible(page, "audit");
    await dark(browser, server, trees);
    await gone(page, server);
    await everyAction(browser);
    await roles(browser);
    await overTls(browser);
    await sharedDatabase(browser);
    await faultsOnTheMap(browser);
    await uplinksOnTheMap(browser);
    await settings(browser);
    assert.deepEqual(faults, [], "faults of pages");
    step("everything passed");
  } finally {
    await browser.close();
    cleanUp();
  }
}

await main();
