// Plan files and networks as JSON states them.

/** One route, or several with what goes along each. */
export type Division = number | [number, number][];
export type Hop = [from: number, to: number, route: Division];
export interface TreeFile {
  root: number;
  multiplicity: number;
  hops?: Hop[];
  routes?: Division[];
}
export interface Network {
  name?: string;
  cluster?: string;
  nodes: { id: string; rank?: number; box?: string; host?: string; rail?: string; kind?: string }[];
  links: { from: string; to: string; bandwidth: string | number; latency?: string | number; both?: boolean }[];
}
export interface PlanFile {
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
