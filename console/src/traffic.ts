// What a plan sends: on which links, and by step and rank.
import type { Link, Tree } from "./model";
import type { Division, Hop, PlanFile, TreeFile } from "./planfile";

/** What a plan does: amounts on links, and what is sent by step and rank. */
export class Traffic {
  readonly onLink: Float64Array;
  readonly steps: number[][] = [];
  /** Depth of the deepest tree of each phase. */
  readonly depths: number[] = [];

  constructor(
    readonly links: readonly Link[],
    readonly ranks: number,
    readonly routes: readonly number[][],
  ) {
    this.onLink = new Float64Array(links.length);
  }

  send(step: number, from: number, amount: number): void {
    while (this.steps.length <= step) this.steps.push(new Array<number>(this.ranks).fill(0));
    if (from < this.ranks) this.steps[step]![from]! += amount;
  }

  /** Whether a tree does not count. */
  skips(_tree: TreeFile): boolean {
    return false;
  }

  /** `weight` is the size of a chunk. The rest names the part of the schedule: its tree, or -1, its step and its ranks. */
  along(division: Division, chunks: number, weight: number, _tree: number, _step: number, _from: number, _to: number): void {
    const parts = typeof division === "number" ? [[division, chunks] as const] : division;
    for (const [route, amount] of parts) for (const link of this.routes[route]!) this.onLink[link]! += amount * weight;
  }

  /** Chunks over one link, for the part of the schedule between two ranks. */
  over(link: number, chunks: number, weight: number, _from: number, _to: number): void {
    this.onLink[link]! += chunks * weight;
  }

  ends(division: Division): [number, number] {
    const route = this.routes[typeof division === "number" ? division : division[0]![0]]!;
    return [this.links[route[0]!]!.from, this.links[route[route.length - 1]!]!.to];
  }
}

export function hopsOf(tree: TreeFile, traffic: Traffic): Hop[] {
  return tree.hops ?? tree.routes!.map((division) => [...traffic.ends(division), division]);
}

/** Adds what trees send, and says which trees there are. */
export function forest(file: PlanFile, traffic: Traffic): Tree[] {
  const trees: Tree[] = [];
  let before = 0;
  const weights = Array.isArray(file.shares) ? (file.shares as number[]) : undefined;
  file.schedule.phases?.forEach((phase, at) => {
    let deepest = 0;
    for (const tree of phase.trees) {
      const own = trees.push({ phase: phase.action, root: tree.root, multiplicity: tree.multiplicity }) - 1;
      if (traffic.skips(tree)) continue;
      const weight = weights?.[tree.root] ?? 1;
      const depth = new Map<number, number>();
      for (const [from, to, division] of hopsOf(tree, traffic)) {
        const level = depth.get(from) ?? 0;
        traffic.along(division, tree.multiplicity, weight, own, before + level, from, to);
        depth.set(to, Math.max(depth.get(to) ?? 0, level + 1));
        traffic.send(before + level, from, tree.multiplicity);
        deepest = Math.max(deepest, level + 1);
      }
    }
    before += traffic.depths[at] ??= deepest;
  });
  return trees;
}

export function inSteps(file: PlanFile, traffic: Traffic): void {
  const weights = Array.isArray(file.shares) && !Array.isArray(file.shares[0]) ? (file.shares as number[]) : undefined;
  for (const [step, , from, to, first, chunks, division] of file.schedule.sends ?? []) {
    for (const start of Array.isArray(first) ? first : [first]) {
      traffic.along(division, chunks, weights?.[Math.floor(start / file.chunks_per_share)] ?? 1, -1, step, from, to);
      traffic.send(step, from, chunks);
    }
  }
}

export function flow(file: PlanFile, traffic: Traffic): void {
  const { paths, ports, patterns, trees, routes } = file.schedule;
  const rows = Array.isArray(file.shares) && Array.isArray(file.shares[0]) ? (file.shares as number[][]) : undefined;
  for (const [source, destination, chunks, along] of paths ?? []) {
    along.forEach((route, step) => {
      traffic.along(route, chunks, rows?.[source]?.[destination] ?? 1, -1, step, source, destination);
      traffic.send(step, traffic.ends(route)[0], chunks);
    });
  }
  for (const [chunks, places] of patterns ?? []) {
    for (let rank = 0; rank * ports! < routes.length; rank++) {
      let at = rank;
      const last = places.reduce((from, place) => traffic.ends(from * ports! + place)[1], rank);
      places.forEach((place, step) => {
        const route = at * ports! + place;
        traffic.along(route, chunks, 1, -1, step, rank, last);
        traffic.send(step, at, chunks);
        at = traffic.ends(route)[1];
      });
    }
  }
  trees?.forEach((tree, source) => {
    const into = new Map(tree.map((link) => [traffic.links[link]!.to, link]));
    for (let rank = 0; rank < traffic.ranks; rank++) {
      for (let at = rank; at !== source && into.has(at); at = traffic.links[into.get(at)!]!.from) {
        traffic.over(into.get(at)!, file.chunks_per_share, rows?.[source]?.[rank] ?? 1, source, rank);
      }
      if (rank !== source) traffic.send(0, source, file.chunks_per_share);
    }
  });
}
