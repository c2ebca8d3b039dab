// Where nodes of a network are drawn: switches above, and machines with their ranks below.
import type { Link, Model, Node } from "./model";

export interface Placed {
  x: number;
  y: number;
}

export interface Layout {
  at: Placed[];
  boxes: { name: string; x: number; y: number; width: number; height: number }[];
  width: number;
  height: number;
}

const CELL = 26;
/** Most characters that a switch has room for. */
const LABEL_MAX = 6;
/** How far the middle of a node is from a line that does not touch it. */
const APART = 17;
/** Most switches and links that are looked at for lines across nodes. */
const COMPARED_MAX = 400;

/** Places switches above, and machines with their ranks below, in rows. */
export function layout({ nodes, links }: Model): Layout {
  const at: Placed[] = nodes.map(() => ({ x: 0, y: 0 }));
  const groupOf = nodes.map((node) => node.group);
  // A switch whose links all end in one machine is in it.
  const inside = new Map<number, Set<string | null>>();
  for (const { from, to } of links) {
    for (const [one, other] of [[from, to], [to, from]] as const) {
      if (nodes[one]!.rank === null) inside.set(one, (inside.get(one) ?? new Set()).add(nodes[other]!.rank === null ? null : groupOf[other]!));
    }
  }
  for (const [node, groups] of inside) {
    const [only] = groups;
    if (groups.size === 1 && only) groupOf[node] = only;
  }
  const groups = new Map<string, number[]>();
  const loose: number[] = [];
  const outside: number[] = [];
  nodes.forEach((node, index) => {
    const group = groupOf[index];
    if (group) groups.set(group, [...(groups.get(group) ?? []), index]);
    else if (node.rank === null) outside.push(index);
    else loose.push(index);
  });
  const tiers = levels(nodes, links, outside);
  if (groups.size === 0) return withoutMachines(at, loose, tiers, links);
  const parts = [...groups].map(([name, members]) => {
    const isRank = (node: number) => nodes[node]!.rank !== null;
    return { name, ranks: members.filter(isRank), switches: members.filter((node) => !isRank(node)) };
  });
  const across = Math.max(3, Math.min(8, ...[Math.max(...parts.map(({ ranks, switches }) => Math.max(ranks.length, switches.length)))]));
  const rowsOf = (count: number) => Math.ceil(count / across);
  const down = Math.max(...parts.map(({ ranks, switches }) => rowsOf(ranks.length) + rowsOf(switches.length) * 1.3));
  const [boxWidth, boxHeight] = [across * CELL + 16, down * CELL + 34];
  const columns = Math.max(1, Math.min(groups.size, Math.round(Math.sqrt((groups.size * boxHeight * 2.4) / boxWidth))));
  const width = Math.max(columns * (boxWidth + 14) + 14, 420);
  const top = inTiers(at, tiers, links, width, 24);
  const boxes = parts.map(({ name, ranks, switches }, index) => {
    const x = (width - columns * (boxWidth + 14) + 14) / 2 + (index % columns) * (boxWidth + 14);
    const y = top + 50 + Math.floor(index / columns) * (boxHeight + 14);
    const place = (all: readonly number[], top: number) => all.forEach((node, index) => {
      const inRow = Math.min(across, all.length - Math.floor(index / across) * across);
      const left = x + 8 + ((across - inRow) * CELL) / 2;
      at[node] = { x: left + ((index % across) + 0.5) * CELL, y: top + (Math.floor(index / across) + 0.5) * CELL };
    });
    place(ranks, y + 22);
    place(switches, y + 22 + (rowsOf(ranks.length) + 0.3) * CELL);
    return { name, x, y, width: boxWidth, height: boxHeight };
  });
  const bottom = top + 50 + Math.ceil(groups.size / columns) * (boxHeight + 14);
  const end = loose.length ? rows(at, loose, width, bottom + 20) + 20 : bottom;
  return { at, boxes, width, height: end };
}

/** Switches that join machines by their distance from these, the nearest first, as `canopy draw` has them. */
export function levels(nodes: readonly Node[], links: readonly Link[], outside: readonly number[]): number[][] {
  const near = nodes.map((): number[] => []);
  for (const { from, to } of links) {
    near[from]!.push(to);
    near[to]!.push(from);
  }
  const isOutside = new Set(outside);
  const seen = new Set(nodes.keys());
  outside.forEach((node) => seen.delete(node));
  const found: number[][] = [];
  let rest = outside;
  while (rest.length) {
    const next = rest.filter((node) => near[node]!.some((other) => seen.has(other)));
    // What no rank reaches stands above all others.
    const tier = next.length ? next : rest;
    tier.forEach((node) => seen.add(node));
    found.push([...tier]);
    rest = rest.filter((node) => !seen.has(node));
  }
  // Above its own: a switch stands over the middle of those that it joins.
  const place = new Map(found[0]?.map((node, index) => [node, index / Math.max(1, found[0]!.length - 1)]));
  for (const tier of found.slice(1)) {
    const middle = (node: number) => {
      const below = near[node]!.filter((other) => isOutside.has(other) && place.has(other)).map((other) => place.get(other)!);
      return below.length ? below.reduce((sum, one) => sum + one, 0) / below.length : 0.5;
    };
    const middles = new Map(tier.map((node) => [node, middle(node)]));
    tier.sort((a, b) => middles.get(a)! - middles.get(b)! || a - b);
    tier.forEach((node, index) => place.set(node, (index + 0.5) / tier.length));
  }
  return found;
}

/** Places switches in rows, the farthest from ranks on top, and says where the last row ends. No line crosses another switch. */
function inTiers(at: Placed[], tiers: readonly number[][], links: readonly Link[], width: number, top: number): number {
  let y = top;
  [...tiers].reverse().forEach((tier, index) => {
    y = rows(at, tier, width, index ? y + CELL * 2.4 : y);
  });
  const switches = tiers.flat();
  const between = links.filter(({ from, to }) => from < to && switches.includes(from) && switches.includes(to));
  if (switches.length <= COMPARED_MAX && between.length <= COMPARED_MAX) {
    for (let round = 0; round < 4; round++) if (!switches.filter((node) => stepAside(at, node, between)).length) break;
  }
  return Math.max(y, ...switches.map((node) => at[node]!.y));
}

/** Moves a node off the lines between others, and says whether there was one. */
function stepAside(at: Placed[], node: number, between: readonly Link[]): boolean {
  const across = between.find(({ from, to }) => from !== node && to !== node && distance(at[node]!, at[from]!, at[to]!) < APART);
  if (!across) return false;
  const [from, to] = [at[across.from]!, at[across.to]!];
  const isFlat = Math.abs(from.y - to.y) < Math.abs(from.x - to.x);
  at[node]![isFlat ? "y" : "x"] += CELL;
  return true;
}

/** How far a point is from the line between two others. */
function distance(point: Placed, from: Placed, to: Placed): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const along = Math.max(0, Math.min(1, ((point.x - from.x) * dx + (point.y - from.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(from.x + along * dx - point.x, from.y + along * dy - point.y);
}

/** What a switch is called in the little room that it has: on a machine without the name of that, else the end of its name. */
export function shortName({ id, group }: Node): string {
  const own = group && id.startsWith(`${group}.`) ? id.slice(group.length + 1) : id;
  if (own.length <= LABEL_MAX) return own;
  if (own !== id) return own.split(/[-.]/)[0]!.slice(0, LABEL_MAX);
  const parts = own.split(/(?<=[-._/])/);
  const ends = parts.map((_, index) => parts.slice(index).join(""));
  return ends.find((end) => end.length <= LABEL_MAX && /[a-z]/i.test(end)) ?? own.slice(-LABEL_MAX);
}

/** Places nodes in rows, and says where the last row ends. */
function rows(at: Placed[], all: readonly number[], width: number, top: number): number {
  const across = Math.max(1, Math.min(all.length, Math.floor(width / (CELL * 1.6))));
  all.forEach((node, index) => {
    const row = Math.floor(index / across);
    const inRow = Math.min(across, all.length - row * across);
    at[node] = { x: (((index % across) + 0.5) * width) / inRow, y: top + row * CELL * 1.6 };
  });
  return top + Math.max(0, Math.ceil(all.length / across) - 1) * CELL * 1.6;
}

function withoutMachines(at: Placed[], ranks: readonly number[], tiers: readonly number[][], links: readonly Link[]): Layout {
  const switches = tiers.flat();
  if (ranks.length <= 48) {
    const radius = Math.max(90, (ranks.length * CELL * 1.5) / (2 * Math.PI));
    const size = 2 * radius + 60;
    ranks.forEach((node, index) => {
      const angle = (2 * Math.PI * index) / ranks.length - Math.PI / 2;
      at[node] = { x: size / 2 + radius * Math.cos(angle), y: size / 2 + radius * Math.sin(angle) };
    });
    switches.forEach((node, index) => {
      const angle = (2 * Math.PI * index) / switches.length;
      const inner = switches.length === 1 ? 0 : radius * 0.45;
      at[node] = { x: size / 2 + inner * Math.cos(angle), y: size / 2 + inner * Math.sin(angle) };
    });
    return { at, boxes: [], width: size, height: size };
  }
  const width = Math.ceil(Math.sqrt(ranks.length * 1.8)) * CELL * 1.6;
  const top = inTiers(at, tiers, links, width, 24);
  return { at, boxes: [], width, height: rows(at, ranks, width, top + 60) + 30 };
}
