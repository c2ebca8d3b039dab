// What uses a link: the trees, sends or paths that cross it, and how much each of them carries.
import type { LinkUses, Use } from "./model";
import type { Division, PlanFile, TreeFile } from "./planfile";
import { flow, forest, inSteps, Traffic } from "./traffic";

/** Most uses that are sent to the page: those that carry most. */
const USES_MAX = 1000;

/** Counts one link, or several between equal ends. */
class LinkTraffic extends Traffic {
  readonly uses = new Map<string, Use>();
  readonly bySteps: number[] = [];
  total = 0;
  /** How often each route crosses the link. */
  private readonly crossings: Uint8Array;

  constructor(of: Traffic, private readonly chosen: ReadonlySet<number>) {
    super(of.links, of.ranks, of.routes);
    this.crossings = Uint8Array.from(of.routes, (route) => route.reduce((count, link) => count + (chosen.has(link) ? 1 : 0), 0));
    this.depths.push(...of.depths);
  }

  private crosses(division: Division): boolean {
    return typeof division === "number" ? this.crossings[division]! > 0 : division.some(([route]) => this.crossings[route]! > 0);
  }

  override skips({ hops, routes }: TreeFile): boolean {
    return hops ? !hops.some(([, , division]) => this.crosses(division)) : !routes!.some((division) => this.crosses(division));
  }

  override send(): void {
    // Only the link counts.
  }

  override along(division: Division, chunks: number, weight: number, tree: number, step: number, from: number, to: number): void {
    const over = typeof division === "number" ? chunks * this.crossings[division]! : division.reduce((sum, [route, amount]) => sum + amount * this.crossings[route]!, 0);
    if (over > 0) this.add(over, weight, tree, step, from, to);
  }

  override over(link: number, chunks: number, weight: number, from: number, to: number): void {
    if (this.chosen.has(link)) this.add(chunks, weight, -1, 0, from, to);
  }

  private add(chunks: number, weight: number, tree: number, step: number, from: number, to: number): void {
    const amount = chunks * weight;
    this.total += amount;
    while (this.bySteps.length <= step) this.bySteps.push(0);
    this.bySteps[step]! += amount;
    // The hops of a tree are one use.
    const key = tree >= 0 ? String(tree) : `${step} ${from} ${to}`;
    const known = this.uses.get(key);
    if (!known) {
      this.uses.set(key, { tree, step, from, to, hops: 1, chunks, amount });
      return;
    }
    known.hops += 1;
    known.chunks += chunks;
    known.amount += amount;
  }
}

/** The uses of all links between two nodes in this direction, largest first. */
export function usesOf(file: PlanFile, traffic: Traffic, from: number, to: number): LinkUses {
  const chosen = new Set(traffic.links.flatMap((link, index) => (link.from === from && link.to === to ? [index] : [])));
  const counted = new LinkTraffic(traffic, chosen);
  const { shape } = file.schedule;
  (shape === "forest" ? forest : shape === "steps" ? inSteps : flow)(file, counted);
  const uses = [...counted.uses.values()].sort((a, b) => b.amount - a.amount || a.step - b.step || a.tree - b.tree || a.from - b.from || a.to - b.to);
  return { total: counted.total, count: uses.length, uses: uses.slice(0, USES_MAX), bySteps: counted.bySteps };
}
