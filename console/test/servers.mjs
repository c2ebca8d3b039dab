// Servers that share a database, on the overview.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { accessible, at, open, Server, step } from "./harness.mjs";

/** Where Debian has the programs of PostgreSQL, those of the newest version. */
function programs() {
  const versions = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql") : [];
  const found = versions.sort((a, b) => Number(b) - Number(a)).map((version) => `/usr/lib/postgresql/${version}/bin`);
  return found.find((folder) => existsSync(join(folder, "initdb")));
}

/** A database at a Unix socket: its address, and how to end it. */
function database(folder) {
  const place = mkdtempSync(join(tmpdir(), "canopy-console-pg-"));
  // PostgreSQL refuses to run as root.
  const user = process.getuid() === 0 ? ["runuser", "-u", "nobody", "--"] : [];
  if (user.length) chmodSync(place, 0o777);
  const postgres = (program, ...words) => {
    const [first, ...rest] = [...user, join(folder, program), ...words];
    const { status, stderr } = spawnSync(first, rest, { cwd: "/", encoding: "utf8", stdio: ["ignore", "ignore", program === "pg_ctl" ? "ignore" : "pipe"] });
    assert.equal(status, 0, `${program}: ${stderr}`);
  };
  const data = join(place, "data");
  postgres("initdb", "-D", data, "-U", "canopy", "-A", "trust", "-N");
  postgres("pg_ctl", "-D", data, "-w", "-l", join(place, "log"), "-o", `-k ${place} -c listen_addresses='' -c fsync=off`, "start");
  const end = () => {
    postgres("pg_ctl", "-D", data, "-m", "immediate", "stop");
    rmSync(place, { recursive: true, force: true });
  };
  return { address: `postgres://canopy@/postgres?host=${place}`, end };
}

export async function sharedDatabase(browser) {
  step("overview: servers of one database");
  const folder = programs();
  if (!folder) return step("  left out: PostgreSQL is not installed");
  const { address, end } = database(folder);
  try {
    const first = await new Server("first", ["--database", address]).start();
    const second = await new Server("second", ["--database", address]).start();
    const page = await open(browser, first);
    await at(page, first, "#/");
    const region = page.getByRole("region", { name: "Servers of this database" });
    const rows = region.locator("tbody tr");
    await rows.nth(1).waitFor();
    assert.equal(await rows.count(), 2);
    const cells = await rows.evaluateAll((found) => found.map((row) => [...row.cells].map((cell) => cell.textContent.trim())));
    assert.match(cells[0][0], new RegExp(`:${first.process.pid} answers$`));
    assert.match(cells[1][0], new RegExp(`:${second.process.pid}$`));
    for (const [, role, kind] of cells) assert.deepEqual([role, kind], ["all", cells[0][2]]);
    await accessible(page, "overview of servers that share a database");
    // One that ends in order leaves at once.
    second.process.kill("SIGTERM");
    await second.ended;
    await rows.nth(1).waitFor({ state: "detached" });
    assert.equal(await rows.count(), 1);
    await page.context().close();
    await first.kill();
  } finally {
    end();
  }
}
