// A chosen link of a plan: by mouse, keyboard and address, what uses it, and how much each carries.
import assert from "node:assert/strict";
import { accessible, at, picture, step } from "./harness.mjs";

/** Longest time from a click to what it shows. */
const INTERACTION_MS = 100;

/** Chunks of a table, added up. */
async function chunksOf(page, head) {
  const uses = page.getByRole("region", { name: "Uses of" });
  await uses.waitFor();
  for (const more = page.getByRole("button", { name: "Show more", exact: true }); await more.count(); ) await more.click();
  return uses.evaluate((region, head) => {
    const column = [...region.querySelectorAll("th")].findIndex((one) => one.textContent === head);
    return [...region.querySelectorAll("tbody tr")].reduce((sum, row) => sum + Number(row.children[column].textContent.replace(/,/g, "")), 0);
  }, head);
}

export async function chosenLink(page, server, { trees, inSteps, paths, big }) {
  step("a chosen link: trees, sends and paths that use it");
  await at(page, server, `#/${trees}?view=links`);
  await page.getByText("Choose a link").waitFor();
  step("  by the mouse");
  const line = page.locator("svg.network line.hit").first();
  await line.dispatchEvent("click");
  await page.waitForURL(/link=/);
  await page.getByRole("heading", { name: "What uses" }).waitFor();
  await page.locator("svg.network .arrow").waitFor();
  step("  by the keyboard");
  await at(page, server, `#/${trees}?view=links`);
  await page.getByLabel("Links of node").fill("b0g0");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "What uses it (link from b0g0 to b0nv)" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "What uses b0g0 → b0nv" }).waitFor();
  const sum = await chunksOf(page, "Chunks");
  await page.getByText(new RegExp(`carr(y|ies) ${sum.toLocaleString("en-GB")} chunks over it`)).waitFor();
  await accessible(page, "a chosen link");
  const viewport = page.viewportSize();
  await page.setViewportSize({ ...viewport, height: 900 });
  await page.locator("svg.network").evaluate((drawing) => scrollTo(0, drawing.getBoundingClientRect().top + scrollY - 10));
  await picture(page, "link");
  await page.setViewportSize(viewport);
  await page.getByRole("link", { name: "Opposite direction" }).click();
  await page.getByRole("heading", { name: "What uses b0nv → b0g0" }).waitFor();
  step("  a tree of it, with its hops over the link");
  await page.getByRole("region", { name: "Uses of" }).getByRole("link").first().click();
  await page.locator("svg.tree path.crossing").first().waitFor();
  assert.equal(await page.getByText(/hops? of this tree cross(es)? the link b0nv → b0g0/).count(), 1);
  await accessible(page, "a tree over a chosen link");
  step("  by the address, and a link that is not there");
  const address = page.url();
  await page.goto("about:blank");
  await page.goto(address);
  await page.locator("svg.tree path.crossing").first().waitFor();
  await at(page, server, `#/${trees}?view=links&link=b0g0%3Ebanana`);
  await page.locator(".empty", { hasText: "has no link b0g0>banana" }).waitFor();
  for (const [name, head, text] of [[inSteps, "Step", "sends use"], [paths, "Source", "paths use"]]) {
    await at(page, server, `#/${name}?view=links`);
    await page.getByRole("link", { name: "What uses it" }).first().click();
    await page.getByText(text).waitFor();
    await page.getByRole("columnheader", { name: head, exact: true }).waitFor();
    assert.ok((await chunksOf(page, "Chunks")) > 0);
    await accessible(page, `a chosen link of ${name}`);
  }
  step("  at 1,024 ranks");
  await at(page, server, `#/${big}?view=links`);
  await page.locator("svg.network").waitFor();
  const spent = await page.evaluate(async () => {
    const times = [];
    for (const place of [0, 7, 13]) {
      const link = [...document.querySelectorAll("main td a")].filter((one) => one.textContent.startsWith("What uses it"))[place];
      const from = performance.now();
      link.click();
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      const frame = performance.now() - from;
      while (!document.querySelector("[aria-label^='Uses of']")) await new Promise((resolve) => setTimeout(resolve, 5));
      times.push([frame, performance.now() - from]);
      location.hash = location.hash.replace(/&link=.*/, "");
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    return times;
  });
  process.stdout.write(`  ${spent.map(([frame, whole]) => `${Math.round(frame)} ms to the frame, ${Math.round(whole)} ms to the list`).join("; ")}\n`);
  const frames = spent.map(([frame]) => frame).sort((a, b) => a - b);
  assert.ok(frames[1] <= INTERACTION_MS, `choosing a link took ${frames} ms`);
}
