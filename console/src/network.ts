// Networks as JSON states them, with nodes and links in the order of their indices in plan files.
import type { Link, Node } from "./model";
import type { Network } from "./planfile";

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
  const nodes = file.nodes.map(({ id, rank, box, host, rail, kind }): Node => ({
    id,
    rank: rank ?? (ranked || kind === "switch" ? null : counted++),
    host: host ?? null,
    box: box ?? null,
    rail: rail ?? null,
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
