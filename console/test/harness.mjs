// Servers and pages for the checks of the console.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "vite";

const [canopyd, canopy, pictures] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const folder = mkdtempSync(join(tmpdir(), "canopy-console-"));
/** Shows the files of this folder in place of those that canopyd has inside, to try changes without building it again. */
const files = process.env.CONSOLE_FILES;
/** Most bytes of a picture for the documents. */
const PICTURE_MAX = 150_000;
/** Waiting is for a slow machine; what is there sooner is seen sooner. */
const PATIENCE_MS = 20_000;

/** Runs the command line: its status, and what it prints. */
export function run(...words) {
  const ran = spawnSync(canopy, words, { encoding: "utf8" });
  return { status: ran.status, said: ran.stdout + ran.stderr };
}

const servers = new Set();
/** Ends all servers of the test, and removes what it wrote. */
export function cleanUp() {
  for (const process of servers) process.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
}

/** A server of its own; started again, it serves the same data at the same addresses. */
export class Server {
  /** `flags` come after those of a server for trying out, or replace them. */
  constructor(name, flags = [], { base = ["--dev"], scheme = "http" } = {}) {
    this.data = join(folder, name);
    this.flags = [...base, ...flags];
    this.scheme = scheme;
    this.ports = ["127.0.0.1:0", "127.0.0.1:0"];
  }
  async start() {
    const [listen, admin] = this.ports;
    const flags = ["--listen", listen, "--admin-listen", admin, "--data-dir", this.data, "--log-format", "json", ...this.flags];
    this.process = spawn(canopyd, flags, { stdio: ["ignore", "ignore", "pipe"] });
    servers.add(this.process);
    this.ended = new Promise((resolve) => this.process.once("exit", resolve));
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
    this.page = `${this.scheme}://${this.ports[1]}/console/`;
    return this;
  }
  async kill() {
    this.process.kill("SIGKILL");
    await this.ended;
  }
  /** Runs a command of the command line, and gives what it prints. By the socket, the owner of the server calls. */
  cli(...words) {
    const { status, said } = this.tries(...words);
    assert.equal(status, 0, `canopy ${words.join(" ")}: ${said}`);
    return said;
  }
  tries(...words) {
    return run(...words, "--server", `unix:${join(this.data, "canopy.sock")}`);
  }
  /** Starts a command and does not wait for it; `ended` gives its status and what it printed. */
  begins(...words) {
    const process = spawn(canopy, [...words, "--server", `unix:${join(this.data, "canopy.sock")}`], { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [process.stdout, process.stderr]) stream.on("data", (chunk) => (said += chunk));
    return { process, ended: new Promise((resolve) => process.once("exit", (status) => resolve({ status, said }))) };
  }
  plan(network, collective, ...more) {
    const said = this.cli("plan", network, "--collective", collective, "-o", join(folder, "plan.json"), ...more);
    return /plans\/[0-9a-f]{32}/.exec(said)[0];
  }
}

export const faults = [];
/** A page that fails the test if it asks another server for anything, breaks its policy, or has a bug. */
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1080, height: 680 }, ...options });
  if (files) await context.route(`${server.page}**`, (route) => serve(route, server));
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

/** A file of the folder, with the headers of the server. */
async function serve(route, server) {
  const name = new URL(route.request().url()).pathname.slice(new URL(server.page).pathname.length) || "index.html";
  const path = join(files, basename(name));
  if (!existsSync(path)) return route.continue();
  const response = await route.fetch().catch(() => undefined);
  if (!response) return route.abort();
  return route.fulfill({ response, status: 200, body: readFileSync(path) });
}

/** What a source of the console exports. */
export async function sources(name) {
  const entry = new URL(`../src/${name}`, import.meta.url).pathname;
  const made = await build({ configFile: false, logLevel: "warn", build: { write: false, minify: false, lib: { entry, formats: ["es"] } } });
  globalThis.self ??= {};
  return import(`data:text/javascript,${encodeURIComponent(made[0].output[0].code)}`);
}

export const at = (page, server, hash) => page.goto(server.page + hash);
export const step = (name) => process.stdout.write(`${name}\n`);

/** No finding of axe that keeps somebody out. */
export async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  const words = bad.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`).join("; ")}`);
  assert.deepEqual(words, [], `accessibility of ${name}`);
}

/** Whether pictures for the documents are made. */
export const hasPictures = pictures !== undefined;

export async function picture(page, name) {
  if (!pictures) return;
  const path = join(pictures, `console-${name}.png`);
  await page.screenshot({ path });
  assert.ok(statSync(path).size <= PICTURE_MAX, `${path} has ${statSync(path).size} bytes`);
}
