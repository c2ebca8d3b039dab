// Where nodes of a network are drawn: switches above, and machines with their ranks below.
import type { Model } from "./model";

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
  if (groups.size === 0) return withoutMachines(at, loose, outside);
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
  const top = rows(at, outside, width, 24);
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

function withoutMachines(at: Placed[], ranks: readonly number[], switches: readonly number[]): Layout {
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
  const top = rows(at, switches, width, 24);
  return { at, boxes: [], width, height: rows(at, ranks, width, top + 60) + 30 };
}
