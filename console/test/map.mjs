// Faults of every kind: on the map, or in the list beside it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { accessible, at, folder, open, Server, step } from "./harness.mjs";

/** A fault of each kind, and what the map marks for it. */
const FAULTS = [
  ["plane:rail0", ["su0rail0", "su1rail0"]],
  ["switch:su0rail1", ["su0rail1"]],
  ["feature:spine0:multicast", ["spine0"]],
  ["node:b3g1", ["b3g1"]],
  ["gpu:b1g1", ["b1g1"]],
  ["nic:b0g3", ["b0g3"]],
  ["host:b2", ["b2g0", "b2g7", "b2nv"]],
  ["link:b0g4=b0nv", []],
];

export async function faultsOnTheMap(browser) {
  step("faults of every kind, on the map or beside it");
  const server = await new Server("map").start();
  server.cli("cluster", "put", "lab", "--network", "pod:boxes=4,su=2");
  server.cli("faults", "report", "clusters/lab", ...FAULTS.map(([fault]) => fault));
  const page = await open(browser, server);
  await at(page, server, "#/clusters/lab");
  await page.locator("svg.network .spot.broken").first().waitFor();
  const marked = await page.locator("svg.network .spot.broken title").allTextContents();
  for (const [, nodes] of FAULTS) for (const node of nodes) assert.ok(marked.some((title) => title.startsWith(`${node}`)), `${node} is marked: ${marked}`);
  const plane = marked.filter((title) => title.includes("plane:rail0"));
  assert.ok(plane.length > 0 && plane.every((title) => title.includes("(switch)") && title.includes("rail0")), `the switches of the plane, and nothing else: ${plane}`);
  assert.match(await page.locator("svg.network line.broken title").first().textContent(), /link:b0g4=b0nv/);
  assert.equal(await page.locator(".elsewhere").count(), 0);
  step("  an element that the map no longer has");
  server.cli("cluster", "put", "lab", "--network", "pod:boxes=2,su=2");
  await page.reload();
  const beside = page.locator(".elsewhere");
  await beside.getByText("host:b2").waitFor();
  const named = await beside.locator("li").allTextContents();
  const shown = await page.locator("svg.network .spot.broken title, svg.network line.broken title").allTextContents();
  const rows = await page.getByRole("region", { name: "Faults" }).locator("tbody tr td:first-child").allTextContents();
  for (const fault of rows) assert.ok(named.includes(fault) || shown.some((title) => title.includes(fault)), `${fault} is on the map or beside it`);
  await accessible(page, "a map with faults elsewhere");
  await page.context().close();
  await server.kill();
}

/** Two leaves and a spine, where one line of all three would draw the link of one leaf through the other. */
export async function uplinksOnTheMap(browser) {
  step("a broken uplink of one leaf");
  const server = await new Server("uplinks").start();
  const node = (id, rest) => `- {id: ${id}${rest}}`;
  const link = (from, to) => `- {from: ${from}, to: ${to}, bandwidth: 50GB/s, both: true}`;
  const gpus = [0, 1, 2, 3].flatMap((host) => [0, 1].map((gpu) => ({ id: `node0${host}.gpu${gpu}`, host: `node0${host}`, leaf: `leaf${1 + (host >> 1)}` })));
  const nodes = [...gpus.map(({ id, host }) => node(id, `, host: ${host}`)), ...["leaf1", "leaf2", "spine"].map((id) => node(id, ", kind: switch"))];
  const links = [...gpus.map(({ id, leaf }) => link(id, leaf)), link("leaf1", "spine"), link("leaf2", "spine")];
  const file = `${folder}/leaves.yaml`;
  writeFileSync(file, ["canopy: 1", "nodes:", ...nodes, "links:", ...links, ""].join("\n"));
  server.cli("cluster", "put", "hall", "--network", file);
  server.cli("faults", "report", "clusters/hall", "link:leaf1=spine");
  const page = await open(browser, server);
  await at(page, server, "#/clusters/hall");
  const line = page.locator("svg.network line.broken").first();
  await line.waitFor();
  const [x1, y1, x2, y2] = await Promise.all(["x1", "y1", "x2", "y2"].map(async (name) => Number(await line.getAttribute(name))));
  const rect = page.locator("svg.network .spot.switch", { has: page.locator("title", { hasText: /^leaf2/ }) }).locator("rect");
  const [x, y, width, height] = await Promise.all(["x", "y", "width", "height"].map(async (name) => Number(await rect.getAttribute(name))));
  for (let part = 0; part <= 1; part += 0.01) {
    const [px, py] = [x1 + part * (x2 - x1), y1 + part * (y2 - y1)];
    assert.ok(px < x || px > x + width || py < y || py > y + height, "the line of leaf1 passes beside leaf2");
  }
  const names = await page.locator("svg.network .spot.switch text").allTextContents();
  assert.deepEqual([...names].sort(), ["leaf1", "leaf2", "spine"]);
  await page.context().close();
  await server.kill();
}
