// Drawings of networks, trees and steps as SVG. A large network shows its nodes without lines between them.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { pairOf, type Broken, type Hops, type Link, type Model, type Node, type Question, type Reply } from "./model";
import { Choice, Empty, Loading, Table } from "./parts";
import { counted, percent, rate } from "./words";

/** Most lines between nodes that a person can follow. */
const LINES_MAX = 600;
/** Most cells of the drawing of steps: beyond it, ranks share a row. */
const ROWS_MAX = 64;

/** Reads a plan file, or a network, beside the page. */
export function useReader(text: Uint8Array | undefined): { model?: Model; problem?: string; tree: (index: number) => Promise<Hops> } {
  const [read, setRead] = useState<{ model?: Model; problem?: string }>({});
  const worker = useRef<Worker>();
  const waiting = useRef<(hops: Hops) => void>();
  useEffect(() => {
    setRead({});
    if (!text) return;
    const own = new Worker(new URL("./reader.ts", import.meta.url), { type: "module" });
    worker.current = own;
    own.onmessage = ({ data }: MessageEvent<Reply>) => {
      if ("hops" in data) waiting.current?.(data.hops);
      else setRead(data);
    };
    own.onerror = () => setRead({ problem: "the file cannot be read" });
    own.postMessage({ ask: "read", text } satisfies Question);
    return () => own.terminate();
  }, [text]);
  const tree = (index: number) =>
    new Promise<Hops>((resolve) => {
      waiting.current = resolve;
      worker.current?.postMessage({ ask: "tree", index } satisfies Question);
    });
  return { ...read, tree };
}

interface Placed {
  x: number;
  y: number;
}

interface Layout {
  at: Placed[];
  boxes: { name: string; x: number; y: number; width: number; height: number }[];
  width: number;
  height: number;
}

const CELL = 26;

/** Places switches above, and machines with their ranks below, in rows. */
function layout({ nodes, links }: Model): Layout {
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

function loadClass(load: number): string {
  if (load <= 0) return "idle";
  if (load > 0.999) return "busiest";
  return load > 0.66 ? "high" : load > 0.33 ? "middle" : "low";
}

/** A network, with the loads of its links if there is a plan, and its faults. */
export function NetworkDrawing({ model, broken }: { model: Model; broken?: Broken }) {
  const [chosen, setChosen] = useState<number>();
  const { at, boxes, width, height } = useMemo(() => layout(model), [model]);
  const hasPlan = model.shape !== "";
  const limit = useMemo(() => smallerSide(model), [model]);
  const pairs = useMemo(() => bothWays(model.links), [model]);
  const busiest = useMemo(() => busiestOf(model), [model]);
  const hasLines = pairs.length <= LINES_MAX;
  const faultCount = (broken?.nodes.size ?? 0) + (broken?.links.size ?? 0);
  const ends = useMemo(() => (hasLines ? new Map<number, string>() : endsOf(model, broken)), [model, broken]);
  const noteOf = (index: number) => broken?.nodes.get(index) ?? ends.get(index);
  const label = `${model.name || "Network"}: ${counted(model.nodes.length, "node")}, ${counted(model.links.length, "link")}${faultCount ? `, ${counted(faultCount, "element")} with faults` : ""}`;
  return (
    <div class="drawing">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} class={width < 700 ? "network small" : "network"} data-nodes={model.nodes.length}
        onClick={(event) => {
          const name = (event.target as Element).closest("[data-node]")?.getAttribute("data-node");
          setChosen(name ? Number(name) : undefined);
        }}>
        {boxes.map(({ name, ...box }) => (
          <g key={name}>
            <rect class="machine" {...box} rx={6} />
            <text class="machine-name" x={box.x + 8} y={box.y + 15}>{name}</text>
          </g>
        ))}
        {hasLines && pairs.map(({ from, to, load }) => {
          const fault = broken?.links.get(pairOf(from, to));
          return (
            <line class={`wire ${hasPlan ? loadClass(load) : ""} ${fault ? "broken" : ""} ${chosen === from || chosen === to ? "chosen" : ""}`}
              x1={at[from]!.x} y1={at[from]!.y} x2={at[to]!.x} y2={at[to]!.y}>{fault && <title>{fault}</title>}</line>
          );
        })}
        {model.nodes.map((node, index) => (
          <Spot node={node} index={index} at={at[index]!} tone={`${hasPlan && !hasLines ? loadClass(busiest[index]!) : ""} ${limit.has(index) ? "limit" : ""} ${noteOf(index) ? "broken" : ""} ${chosen === index ? "chosen" : ""}`} note={noteOf(index)} />
        ))}
      </svg>
      <Legend hasPlan={hasPlan} hasLimit={limit.size > 0} hasFaults={faultCount > 0} hasLines={hasLines} />
      <LinksOf model={model} chosen={chosen} choose={setChosen} hasPlan={hasPlan} />
    </div>
  );
}

/** The side of the bottleneck cut that has fewer nodes. */
function smallerSide({ nodes, limit }: Model): ReadonlySet<number> {
  const set = new Set(limit);
  return set.size * 2 <= nodes.length ? set : new Set(nodes.map((_, node) => node).filter((node) => !set.has(node)));
}

/** Where links are not drawn, the ranks at the ends of broken ones show the fault. */
function endsOf({ nodes }: Model, broken: Broken | undefined): Map<number, string> {
  const found = new Map<number, string>();
  for (const [pair, text] of broken?.links ?? []) {
    const ends = pair.split(" ").map(Number);
    const ranks = ends.filter((end) => nodes[end]?.rank !== null);
    for (const end of ranks.length ? ranks : ends) found.set(end, text);
  }
  return found;
}

/** The busiest link of each node. */
function busiestOf(model: Model): Float64Array {
  const most = new Float64Array(model.nodes.length);
  for (const { from, to, load } of model.links) for (const end of [from, to]) most[end] = Math.max(most[end]!, load);
  return most;
}

/** One line for both directions of a link, with the greater load. */
function bothWays(links: readonly Link[]): { from: number; to: number; load: number }[] {
  const pairs = new Map<string, { from: number; to: number; load: number }>();
  for (const { from, to, load } of links) {
    const key = pairOf(from, to);
    const known = pairs.get(key);
    if (known) known.load = Math.max(known.load, load);
    else pairs.set(key, { from, to, load });
  }
  return [...pairs.values()].sort((a, b) => a.load - b.load);
}

function Spot({ node, index, at, tone, note }: { node: Node; index: number; at: Placed; tone: string; note: string | undefined }) {
  const title = `${node.id}${node.rank === null ? " (switch)" : `, rank ${node.rank}`}${note ? `: ${note}` : ""}`;
  return (
    <g class={`spot ${node.rank === null ? "switch" : "rank"} ${tone}`} data-node={index}>
      <title>{title}</title>
      {node.rank === null ? <rect x={at.x - 12} y={at.y - 8} width={24} height={16} rx={3} /> : <circle cx={at.x} cy={at.y} r={10} />}
      <text x={at.x} y={at.y + (node.rank === null ? 2.5 : 3.5)}>{node.rank ?? node.id.slice(0, 5)}</text>
      {tone.includes("broken") && <path class="cross" d={`M${at.x - 11} ${at.y - 11}l22 22m0-22l-22 22`} />}
    </g>
  );
}

function Legend({ hasPlan, hasLimit, hasFaults, hasLines }: { hasPlan: boolean; hasLimit: boolean; hasFaults: boolean; hasLines: boolean }) {
  const load = [["idle", "unused"], ["low", "up to a third"], ["middle", "up to two thirds"], ["high", "more"], ["busiest", "busiest"]];
  return (
    <ul class="legend">
      <li><svg viewBox="0 0 20 12" aria-hidden="true"><circle class="sample" cx="10" cy="6" r="5" /></svg>rank</li>
      <li><svg viewBox="0 0 20 12" aria-hidden="true"><rect class="sample" x="3" y="2" width="14" height="8" rx="2" /></svg>switch</li>
      {hasPlan && load.map(([name, text]) => <li><svg viewBox="0 0 20 12" aria-hidden="true"><line class={`wire ${name}`} x1="0" y1="6" x2="20" y2="6" /></svg>{text}</li>)}
      {hasLimit && <li><svg viewBox="0 0 20 12" aria-hidden="true"><circle class="sample limit" cx="10" cy="6" r="5" /></svg>one side of the cut that limits every plan</li>}
      {hasFaults && <li><svg viewBox="0 0 20 12" aria-hidden="true"><path class="cross" d="M5 1l10 10m0-10L5 11" /></svg>fault</li>}
      {hasPlan && !hasLines && <li>Nodes have the colour of their busiest link; choose one to see its links.</li>}
    </ul>
  );
}

/** The busiest links, of the whole network or of one node. */
function LinksOf({ model, chosen, choose, hasPlan }: { model: Model; chosen: number | undefined; choose: (node: number | undefined) => void; hasPlan: boolean }) {
  const shown = useMemo(() => {
    const own = chosen === undefined ? model.links : model.links.filter(({ from, to }) => from === chosen || to === chosen);
    return [...own].sort((a, b) => b.load - a.load).slice(0, 20);
  }, [model, chosen]);
  const name = (index: number) => model.nodes[index]!.id;
  return (
    <div class="links">
      <label class="field">
        <span>Links of node</span>
        <input type="text" list="nodes" placeholder="all nodes" value={chosen === undefined ? "" : name(chosen)}
          onChange={(event) => {
            const found = model.nodes.findIndex((node) => node.id === event.currentTarget.value.trim());
            choose(found < 0 ? undefined : found);
          }} />
        <datalist id="nodes">{model.nodes.slice(0, 2000).map((node) => <option value={node.id} />)}</datalist>
      </label>
      <Table label={hasPlan ? "Busiest links" : "Links"} rows={shown} keyOf={(link) => `${link.from}-${link.to}`}
        columns={[
          { head: "From", cell: (link) => name(link.from) },
          { head: "To", cell: (link) => name(link.to) },
          { head: "Rate", cell: (link) => rate(link.bandwidth), number: true },
          ...(hasPlan ? [{ head: "Load, of the busiest", cell: (link: Link) => percent(link.load), number: true }] : []),
        ]} />
    </div>
  );
}

/** One tree of a plan, from its root on the left. */
export function TreeDrawing({ model, tree }: { model: Model; tree: (index: number) => Promise<Hops> }) {
  const [index, setIndex] = useState(0);
  const [hops, setHops] = useState<Hops>();
  useEffect(() => {
    let isLate = false;
    if (model.trees.length) void tree(index).then((found) => isLate || setHops(found));
    return () => void (isLate = true);
  }, [model, index]);
  const stated = model.trees[index];
  const drawn = useMemo(() => (hops && stated ? treeLayout(hops, stated.root, stated.phase === "reduce") : undefined), [hops]);
  if (model.trees.length === 0) return <Empty>This schedule is in {model.shape === "steps" ? "steps" : "paths"}, not in trees.</Empty>;
  const options = model.trees.slice(0, 2000).map(({ phase, root, multiplicity }, at): [string, string] => [
    String(at), `${at + 1}: ${phase} ${phase === "reduce" ? "to" : "from"} rank ${root}${multiplicity > 1 ? ` (${multiplicity} equal trees)` : ""}`,
  ]);
  return (
    <div class="drawing">
      <Choice label="Tree" value={String(index)} of={options} onChange={(value) => setIndex(Number(value))} />
      {!drawn ? <Loading /> : (
        <svg class="tree" viewBox={`0 0 ${drawn.width} ${drawn.height}`} role="img" aria-label={`Tree of rank ${stated!.root}: ${counted(drawn.at.size, "rank")}, depth ${drawn.depth}`}>
          {drawn.edges.map(([from, to]) => {
            const [a, b] = [drawn.at.get(from)!, drawn.at.get(to)!];
            return <path class="branch" d={`M${a.x} ${a.y}C${(a.x + b.x) / 2} ${a.y} ${(a.x + b.x) / 2} ${b.y} ${b.x} ${b.y}`} />;
          })}
          {[...drawn.at].map(([rank, { x, y }]) => (
            <g class="spot rank"><title>{model.nodes[rank]?.id}</title><circle cx={x} cy={y} r={drawn.radius} />{drawn.radius > 7 && <text x={x} y={y + 3.5}>{rank}</text>}</g>
          ))}
        </svg>
      )}
    </div>
  );
}

function treeLayout(hops: Hops, root: number, towardsRoot: boolean) {
  const children = new Map<number, number[]>();
  const edges = hops.map(([from, to]): [number, number] => (towardsRoot ? [to, from] : [from, to]));
  for (const [parent, child] of edges) children.set(parent, [...(children.get(parent) ?? []), child]);
  const radius = edges.length > 200 ? 3 : 10;
  const gap = radius * 2.5;
  const at = new Map<number, Placed>();
  let [leaves, depth] = [0, 0];
  const place = (rank: number, level: number): number => {
    depth = Math.max(depth, level);
    const below = (children.get(rank) ?? []).filter((child) => !at.has(child));
    at.set(rank, { x: 0, y: 0 });
    const heights = below.map((child) => place(child, level + 1));
    const y = heights.length ? (heights[0]! + heights[heights.length - 1]!) / 2 : (leaves++ + 1) * gap;
    at.set(rank, { x: level, y });
    return y;
  };
  place(root, 0);
  const width = 640;
  for (const spot of at.values()) spot.x = 20 + (spot.x / Math.max(1, depth)) * (width - 40);
  return { at, edges, depth, radius, width, height: (leaves + 1) * gap };
}

/** Which rank sends how much in which step. */
export function StepsDrawing({ model }: { model: Model }) {
  const ranks = model.steps[0]?.length ?? 0;
  const share = Math.max(1, Math.ceil(ranks / ROWS_MAX));
  const rowCount = Math.ceil(ranks / share);
  const columns = Math.min(model.steps.length, 200);
  const { cells, totals, most } = useMemo(() => {
    const cells = Array.from({ length: rowCount }, () => new Array<number>(columns).fill(0));
    const totals = model.steps.map((step) => step.reduce((a, b) => a + b, 0));
    for (let step = 0; step < columns; step++) model.steps[step]!.forEach((amount, rank) => (cells[Math.floor(rank / share)]![step]! += amount));
    return { cells, totals, most: Math.max(1, ...cells.flat()) };
  }, [model]);
  if (ranks === 0) return <Empty>The plan sends nothing.</Empty>;
  const [width, left, height] = [640, 60, Math.max(6, Math.min(18, 640 / rowCount))];
  const cell = (width - left) / columns;
  const what = model.shape === "steps" ? "step" : "depth";
  return (
    <div class="drawing">
      <svg class="steps" viewBox={`0 0 ${width} ${rowCount * height + 24}`} role="img" aria-label={`What each rank sends by ${what}: ${counted(model.steps.length, what)}`}>
        {cells.map((row, at) => (
          <g>
            {(at % Math.ceil(12 / height) === 0) && <text class="axis" x={left - 6} y={at * height + height / 2 + 3}>{share > 1 ? `${at * share}–${Math.min(ranks, (at + 1) * share) - 1}` : at}</text>}
            {row.map((amount, step) => amount > 0 && <rect class="cell" x={left + step * cell} y={at * height} width={Math.max(1, cell - 1)} height={height - 1} fill-opacity={0.15 + (0.85 * amount) / most}><title>{`rank ${at * share}, ${what} ${step}: ${amount} chunks`}</title></rect>)}
          </g>
        ))}
        {Array.from({ length: columns }, (_, step) => (columns <= 20 || step % Math.ceil(columns / 20) === 0) && <text class="axis under" x={left + (step + 0.5) * cell} y={rowCount * height + 14}>{step}</text>)}
      </svg>
      <Table label={`Chunks sent by ${what}`} rows={totals.slice(0, 200).map((total, step) => ({ step, total }))} keyOf={({ step }) => String(step)}
        columns={[
          { head: what === "step" ? "Step" : "Depth", cell: ({ step }) => step, number: true },
          { head: "Chunks sent", cell: ({ total }) => total.toLocaleString("en-GB"), number: true },
          { head: "Ranks that send", cell: ({ step }) => model.steps[step]!.filter((amount) => amount > 0).length, number: true },
        ]} />
    </div>
  );
}
