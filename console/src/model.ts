// A network, the loads that a plan puts on its links, and what its ranks send when: what drawings need.

export interface Node {
  id: string;
  rank: number | null;
  host: string | null;
  box: string | null;
  /** Its rail or plane. */
  rail: string | null;
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
  /** The cluster that it is a part of, or empty. */
  cluster: string;
  nodes: Node[];
  links: Link[];
  /** Nodes of the set that limits every plan, if the bound is that of a cut. */
  limit: number[];
  /** Shape of the schedule; empty for a network without a plan. */
  shape: string;
  trees: Tree[];
  /** By step and rank: what the rank sends, in chunks. */
  steps: number[][];
  /** Number of equal chunks of a share. */
  chunks: number;
}

/** A part of a schedule that uses a link: a tree, a send of a step, or a step of a path. */
export interface Use {
  /** Index of the tree, or -1. */
  tree: number;
  step: number;
  /** Ranks of the send, or ends of the path; of a tree, those of its first hop over the link. */
  from: number;
  to: number;
  /** Hops of the tree over the link, or sends between these ranks. */
  hops: number;
  chunks: number;
  /** Chunks times the weight of the share. */
  amount: number;
}

/** What uses a link. */
export interface LinkUses {
  /** Amount of all. */
  total: number;
  /** Number of all. */
  count: number;
  /** The largest. */
  uses: Use[];
  /** Amount by step, or by depth. */
  bySteps: number[];
}

/** Two nodes with a link from one to the other. */
export interface Ends {
  from: number;
  to: number;
}

/** Elements with faults, and the names of these: nodes by index, links by {@link pairOf} of their ends. */
export interface Broken {
  nodes: ReadonlyMap<number, string>;
  links: ReadonlyMap<string, string>;
  /** Names of faults that concern nothing that is drawn. */
  elsewhere: readonly string[];
}

/** Names two nodes, in any order. */
export function pairOf(a: number, b: number): string {
  return a < b ? `${a} ${b}` : `${b} ${a}`;
}

/** From sender to receiver, in an order in which data can flow; whether the hop crosses the link that was asked for. */
export type Hops = [from: number, to: number, crosses: boolean][];

export type Question = { ask: "read"; text: Uint8Array } | { ask: "tree"; index: number; link: Ends | undefined } | { ask: "uses"; link: Ends };
export type Reply = { model: Model } | { hops: Hops } | { uses: LinkUses } | { problem: string };
