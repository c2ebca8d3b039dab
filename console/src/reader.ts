// Reads plan files and networks apart from the page, so that it stays responsive.
import type { Hops, Link, Model, Node, Question, Reply, Tree } from "./model";

type Division = number | [number, number][];
type Hop = [from: number, to: number, route: Division];
interface TreeFile {
  root: number;
  multiplicity: number;
  hops?: Hop[];
  routes?: Division[];
}
interface Network {
  name?: string;
  nodes: { id: string; rank?: number; box?: string; host?: string; kind?: string }[];
  links: { from: string; to: string; bandwidth: string | number; latency?: string | number; both?: boolean }[];
}
interface PlanFile {
  kind?: string;
  topology: Network;
  collective: string;
  root?: number;
  shares: "uniform" | number[] | number[][];
  chunks_per_share: number;
  schedule: {
    shape: string;
    routes: number[][];
    phases?: { action: string; trees: TreeFile[] }[];
    sends?: [number, string, number, number, number | number[], number, Division][];
    paths?: [number, number, number, number[]][];
    ports?: number;
    patterns?: [number, number[]][];
    trees?: number[][];
  };
  certificate?: { kind: string; nodes?: number[] };
}

const RATE = /^([0-9.]+)\s*([kKMGT]?)(i?)(B|b|bit|bytes?)?(?:\/s|ps)?$/;

/** A rate in bytes per second. */
export function bandwidth(stated: string | number): number {
  if (typeof stated === "number") return stated;
  const found = RATE.exec(stated.trim());
  if (!found) return Number(stated) || 1;
  const [, number, prefix, binary, unit] = found;
  const step = " kMGT".indexOf((prefix || " ").replace("K", "k"));
  const size = (binary ? 1024 : 1000) ** step;
  return Number(number) * size * (unit === "b" || unit === "bit" ? 1 / 8 : 1);
}

function time(stated: string | number | undefined): number {
  if (stated === undefined) return 0;
  if (typeof stated === "number") return stated;
  const found = /^([0-9.]+)\s*(ns|us|µs|ms|s)?$/.exec(stated);
  return found ? Number(found[1]) * { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }[found[2] ?? "ns"]! : 0;
}

/** Compares as the server does: by bytes of UTF-8, which is the order of code points. */
function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Nodes and links in the order of their indices in a plan file. */
export function network(file: Network): { nodes: Node[]; links: Link[] } {
  const ranked = file.nodes.some((node) => node.rank !== undefined);
  let counted = 0;
  const nodes = file.nodes.map(({ id, rank, box, host, kind }): Node => ({
    id,
    rank: rank ?? (ranked || kind === "switch" ? null : counted++),
    group: host ?? box ?? null,
  }));
  nodes.sort((a, b) => {
    if (a.rank !== null && b.rank !== null) return a.rank - b.rank;
    return a.rank !== null ? -1 : b.rank !== null ? 1 : order(a.id, b.id);
  });
  const index = new Map(nodes.map((node, at) => [node.id, at]));
  const merged = new Map<string, Link & { latency: number }>();
  const add = (from: string, to: string, rate: number, latency: number) => {
    const [start, end] = [index.get(from)!, index.get(to)!];
    const key = `${start} ${end} ${latency}`;
    const known = merged.get(key);
    if (known) known.bandwidth += rate;
    else merged.set(key, { from: start, to: end, bandwidth: rate, latency, load: 0 });
  };
  for (const link of file.links) {
    const [rate, latency] = [bandwidth(link.bandwidth), time(link.latency)];
    add(link.from, link.to, rate, latency);
    if (link.both) add(link.to, link.from, rate, latency);
  }
  const links = [...merged.values()];
  links.sort((a, b) => a.from - b.from || a.to - b.to || a.latency - b.latency);
  return { nodes, links };
}

/** What a plan does: amounts on links, and what is sent by step and rank. */
class Traffic {
  readonly onLink: Float64Array;
  readonly steps: number[][] = [];

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

  /** `weight` is the size of a chunk. */
  along(division: Division, chunks: number, weight: number): void {
    const parts = typeof division === "number" ? [[division, chunks] as const] : division;
    for (const [route, amount] of parts) for (const link of this.routes[route]!) this.onLink[link]! += amount * weight;
  }

  ends(division: Division): [number, number] {
    const route = this.routes[typeof division === "number" ? division : division[0]![0]]!;
    return [this.links[route[0]!]!.from, this.links[route[route.length - 1]!]!.to];
  }
}

function hopsOf(tree: TreeFile, traffic: Traffic): Hop[] {
  return tree.hops ?? tree.routes!.map((division) => [...traffic.ends(division), division]);
}

function forest(file: PlanFile, traffic: Traffic): Tree[] {
  const trees: Tree[] = [];
  let before = 0;
  const weights = Array.isArray(file.shares) ? (file.shares as number[]) : undefined;
  for (const phase of file.schedule.phases ?? []) {
    let deepest = 0;
    for (const tree of phase.trees) {
      trees.push({ phase: phase.action, root: tree.root, multiplicity: tree.multiplicity });
      const weight = weights?.[tree.root] ?? 1;
      const depth = new Map<number, number>();
      for (const [from, to, division] of hopsOf(tree, traffic)) {
        traffic.along(division, tree.multiplicity, weight);
        const at = depth.get(from) ?? 0;
        depth.set(to, Math.max(depth.get(to) ?? 0, at + 1));
        traffic.send(before + at, from, tree.multiplicity);
        deepest = Math.max(deepest, at + 1);
      }
    }
    before += deepest;
  }
  return trees;
}

function inSteps(file: PlanFile, traffic: Traffic): void {
  const weights = Array.isArray(file.shares) && !Array.isArray(file.shares[0]) ? (file.shares as number[]) : undefined;
  for (const [step, , from, , first, chunks, division] of file.schedule.sends ?? []) {
    for (const start of Array.isArray(first) ? first : [first]) {
      traffic.along(division, chunks, weights?.[Math.floor(start / file.chunks_per_share)] ?? 1);
      traffic.send(step, from, chunks);
    }
  }
}

function flow(file: PlanFile, traffic: Traffic): void {
  const { paths, ports, patterns, trees, routes } = file.schedule;
  const rows = Array.isArray(file.shares) && Array.isArray(file.shares[0]) ? (file.shares as number[][]) : undefined;
  for (const [source, destination, chunks, along] of paths ?? []) {
    along.forEach((route, step) => {
      traffic.along(route, chunks, rows?.[source]?.[destination] ?? 1);
      traffic.send(step, traffic.ends(route)[0], chunks);
    });
  }
  for (const [chunks, places] of patterns ?? []) {
    for (let rank = 0; rank * ports! < routes.length; rank++) {
      let at = rank;
      places.forEach((place, step) => {
        const route = at * ports! + place;
        traffic.along(route, chunks, 1);
        traffic.send(step, at, chunks);
        at = traffic.ends(route)[1];
      });
    }
  }
  trees?.forEach((tree, source) => {
    const into = new Map(tree.map((link) => [traffic.links[link]!.to, link]));
    for (let rank = 0; rank < traffic.ranks; rank++) {
      for (let at = rank; at !== source && into.has(at); at = traffic.links[into.get(at)!]!.from) {
        traffic.onLink[into.get(at)!]! += file.chunks_per_share * (rows?.[source]?.[rank] ?? 1);
      }
      if (rank !== source) traffic.send(0, source, file.chunks_per_share);
    }
  });
}

/** The model of a plan file or of a network, and the file. */
export function read(text: string): { model: Model; traffic: Traffic | undefined; file: PlanFile | undefined } {
  const parsed = JSON.parse(text) as PlanFile | Network;
  const plan = "schedule" in parsed ? parsed : undefined;
  const described = plan ? plan.topology : (parsed as Network);
  const { nodes, links } = network(described);
  const model: Model = { name: described.name ?? "", nodes, links, limit: [], shape: "", trees: [], steps: [] };
  if (!plan) return { model, traffic: undefined, file: undefined };
  const ranks = nodes.filter((node) => node.rank !== null).length;
  const traffic = new Traffic(links, ranks, plan.schedule.routes);
  const { shape } = plan.schedule;
  if (shape === "forest") model.trees = forest(plan, traffic);
  else if (shape === "steps") inSteps(plan, traffic);
  else flow(plan, traffic);
  const times = links.map((link, at) => traffic.onLink[at]! / link.bandwidth);
  const most = times.reduce((a, b) => Math.max(a, b), 0) || 1;
  links.forEach((link, at) => (link.load = times[at]! / most));
  model.limit = plan.certificate?.nodes ?? [];
  model.shape = shape;
  model.steps = traffic.steps;
  return { model, traffic, file: plan };
}

/** The hops of a tree, counted over all phases. */
export function treeOf(file: PlanFile, traffic: Traffic, index: number): Hops {
  const trees = (file.schedule.phases ?? []).flatMap((phase) => phase.trees);
  return hopsOf(trees[index]!, traffic).map(([from, to]) => [from, to]);
}

let kept: ReturnType<typeof read> | undefined;

function answer(question: Question): Reply {
  try {
    if (question.ask === "tree") return { hops: treeOf(kept!.file!, kept!.traffic!, question.index) };
    kept = read(new TextDecoder().decode(question.text));
    return { model: kept.model };
  } catch (problem) {
    return { problem: problem instanceof Error ? problem.message : String(problem) };
  }
}

self.onmessage = (event: MessageEvent<Question>) => self.postMessage(answer(event.data));
