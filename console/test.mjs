// Visits every page of the console in a browser, as a person would: node test.mjs CANOPYD CANOPY [FOLDER FOR PICTURES]
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { build } from "vite";

const [canopyd, canopy, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "canopy-console-"));
/** Most bytes of a picture for the documents. */
const PICTURE_MAX = 150_000;
/** Longest time from a click to what it shows, at 1,024 ranks. */
const INTERACTION_MS = 100;
/** Longest time to the first paint. */
const PAINT_MS = 1000;
/** Waiting is for a slow machine; what is there sooner is seen sooner. */
const PATIENCE_MS = 20_000;

/** A server of its own; `again` serves the same data at the same addresses. */
class Server {
  constructor(name, flags = []) {
    this.data = join(folder, name);
    this.flags = flags;
    this.ports = ["127.0.0.1:0", "127.0.0.1:0"];
  }
  async start() {
    const [listen, admin] = this.ports;
    const flags = ["--dev", "--listen", listen, "--admin-listen", admin, "--data-dir", this.data, "--log-format", "json", ...this.flags];
    this.process = spawn(canopyd, flags, { stdio: ["ignore", "ignore", "pipe"] });
    this.ports = await new Promise((resolve, reject) => {
      let text = "";
      const look = (chunk) => {
        text += chunk;
        const line = text.split("\n").find((one) => one.includes("serving canopy.v1") && one.endsWith("}"));
        if (line) resolve([JSON.parse(line).tcp, JSON.parse(line).admin]);
      };
      this.process.stderr.on("data", look);
      this.process.on("exit", () => reject(new Error(`canopyd ended: ${text}`)));
    });
    this.page = `http://${this.ports[1]}/console/`;
    return this;
  }
  async kill() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await ended;
  }
  /** Runs a command of the command line, and gives what it prints. */
  cli(...words) {
    const ran = spawnSync(canopy, words, { env: { ...process.env, CANOPY_SERVER: this.ports[0] }, encoding: "utf8" });
    assert.equal(ran.status, 0, `canopy ${words.join(" ")}: ${ran.stderr}`);
    return ran.stdout + ran.stderr;
  }
  plan(network, collective, ...more) {
    const said = this.cli("plan", network, "--collective", collective, "-o", join(folder, "plan.json"), ...more);
    return /plans\/[0-9a-f]{32}/.exec(said)[0];
  }
}

const faults = [];
/** A page that fails the test if it asks another server for anything, breaks its policy, or has a bug. */
async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1080, height: 680 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("request", (request) => {
    const from = new URL(request.url());
    if (from.host !== server.ports[1] && from.protocol !== "blob:") faults.push(`asked for ${request.url()}`);
  });
  page.on("pageerror", (error) => faults.push(error.stack ?? error.message));
  page.on("console", (message) => {
    const isExpected = /Failed to load resource|ERR_CONNECTION|ERR_EMPTY|ERR_INCOMPLETE/.test(message.text());
    if (message.type() === "error" && !isExpected) faults.push(message.text());
  });
  return page;
}

const at = (page, server, hash) => page.goto(server.page + hash);
const step = (name) => process.stdout.write(`${name}\n`);

/** No finding of axe that keeps somebody out. */
async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const words = bad.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(words, [], `accessibility of ${name}`);
}

async function picture(page, name) {
  if (!pictures) return;
  const path = join(pictures, `console-${name}.png`);
  await page.screenshot({ path });
  assert.ok(statSync(path).size <= PICTURE_MAX, `${path} has ${statSync(path).size} bytes`);
}

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
  await picture(page, "overview");
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

async function actions(page, server, name) {
  step("actions: only when asked for, and confirmed");
  await at(page, server, `#/${name}`);
  await page.getByRole("heading", { name: "Origin and use" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Pin|Evict/ }).count(), 0);
  await page.getByRole("checkbox", { name: "Actions" }).check();
  await page.getByRole("button", { name: "Pin the plan" }).click();
  await accessible(page, "a question");
  await page.keyboard.press("Escape");
  assert.equal(await page.getByText("pinned", { exact: true }).count(), 0, "nothing happens without confirmation");
  await page.getByRole("button", { name: "Pin the plan" }).click();
  await page.getByRole("button", { name: "Pin it" }).click();
  await page.locator(".subject .badge", { hasText: "pinned" }).waitFor();
  await page.getByRole("button", { name: "Evict the plan" }).click();
  await page.getByRole("button", { name: "Evict it" }).click();
  await page.getByRole("dialog").getByText("unpin it first").waitFor();
  await page.getByRole("button", { name: "Keep as it is" }).last().click();
  await page.getByRole("checkbox", { name: "Actions" }).uncheck();
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

async function strangers(browser) {
  step("access rules: a token, its role, and pages elsewhere");
  const rules = join(folder, "access.toml");
  writeFileSync(rules, '[[grant]]\nuser = 4242\nroles = ["viewer"]\n', { mode: 0o600 });
  const server = new Server("guarded", ["--access", rules]);
  await server.start();
  const socket = `unix:${join(server.data, "canopy.sock")}`;
  const own = (...words) => server.cli(...words, "--server", socket);
  const name = /plans\/[0-9a-f]{32}/.exec(own("plan", "ring:4", "--collective", "allgather", "-o", join(folder, "own.json")))[0];
  const tokens = spawnSync(canopy, ["tokens", "create", "watcher", "--role", "viewer", "--data-dir", server.data, "-o", join(folder, "token")], { encoding: "utf8" });
  assert.equal(tokens.status, 0, tokens.stderr);
  const token = readFileSync(join(folder, "token"), "utf8").trim();
  const page = await open(browser, server);
  await at(page, server, `#/${name}`);
  await page.getByText("This server asks who you are").waitFor();
  await accessible(page, "sign-in");
  await page.getByLabel("Token", { exact: true }).fill("cnpy_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not accept this token").waitFor();
  await page.getByLabel("Token", { exact: true }).fill(token);
  // A new token is looked for twice a second.
  await page.waitForTimeout(1500);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "What limits it" }).waitFor();
  assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie]), [0, ""]);
  await page.getByRole("checkbox", { name: "Actions" }).check();
  await page.getByRole("button", { name: "Pin the plan" }).click();
  await page.getByRole("button", { name: "Pin it" }).click();
  await page.getByText("METHOD_NOT_ALLOWED").waitFor();
  await page.context().close();
  await server.kill();
}

async function dark(browser, server, name) {
  step("dark mode");
  const page = await open(browser, server, { colorScheme: "dark" });
  for (const hash of ["#/", "#/plans", `#/${name}`, `#/${name}?view=links`, "#/clusters/prod", "#/leases", "#/faults", "#/jobs", "#/audit"]) {
    await at(page, server, hash);
    await page.locator("main section, main table, main svg").first().waitFor();
    await accessible(page, `${hash}, dark`);
  }
  await page.context().close();
}

/** What the drawings show must be what the server has checked: the busiest link gives the rate that the plan states. */
async function loads(server) {
  step("loads of links give the rates of plans");
  const made = await build({
    configFile: false,
    logLevel: "warn",
    build: { write: false, minify: false, lib: { entry: new URL("src/reader.ts", import.meta.url).pathname, formats: ["es"] } },
  });
  globalThis.self = {};
  const { read } = await import(`data:text/javascript,${encodeURIComponent(made[0].output[0].code)}`);
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
    await plans(page, server);
    step("one plan: trees, steps, paths");
    await onePlan(page, server, trees, { trees: true });
    await at(page, server, `#/${trees}?view=links`);
    await page.locator("svg.network").waitFor();
    await picture(page, "plan");
    await onePlan(page, server, both, { trees: true });
    await onePlan(page, server, inSteps, { steps: true });
    await onePlan(page, server, paths, {});
    await large(page, server, big);
    await clusters(page, server);
    await live(page, server);
    await jobs(page, server);
    await at(page, server, "#/audit");
    await page.getByText("anybody").first().waitFor();
    await accessible(page, "audit");
    await actions(page, server, trees);
    await dark(browser, server, trees);
    await gone(page, server);
    await strangers(browser);
    assert.deepEqual(faults, [], "faults of pages");
    step("everything passed");
  } finally {
    await browser.close();
    server.process.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

await main();
