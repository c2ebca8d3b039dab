// Faults of every kind: on the map, or in the list beside it.
import assert from "node:assert/strict";
import { accessible, at, open, Server, step } from "./harness.mjs";

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
