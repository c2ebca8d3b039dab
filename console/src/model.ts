// A network, the loads that a plan puts on its links, and what its ranks send when: what drawings need.

export interface Node {
  id: string;
  rank: number | null;
  /** The machine or box that it belongs to. */
  group: string | null;
}

export interface Link {
  from: number;
  to: number;
  bandwidth: number;
  /** Time that its load takes, as a fraction of that of the busiest link. */
  load: number;
}

export interface Tree {
  phase: string;
  root: number;
  multiplicity: number;
}

export interface Model {
  name: string;
  nodes: Node[];
  links: Link[];
  /** Nodes of the set that limits every plan, if the bound is that of a cut. */
  limit: number[];
  /** Shape of the schedule; empty for a network without a plan. */
  shape: string;
  trees: Tree[];
  /** By step and rank: what the rank sends, in chunks. */
  steps: number[][];
}

/** Elements with faults, and the names of these: nodes by index, links by {@link pairOf} of their ends. */
export interface Broken {
  nodes: ReadonlyMap<number, string>;
  links: ReadonlyMap<string, string>;
}

/** Names two nodes, in any order. */
export function pairOf(a: number, b: number): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

/** From sender to receiver, in an order in which data can flow. */
export type Hops = [from: number, to: number][];

export type Question = { ask: "read"; text: Uint8Array } | { ask: "tree"; index: number };
export type Reply = { model: Model } | { hops: Hops } | { problem: string };
