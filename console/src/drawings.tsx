// Drawings of networks as SVG. A large network shows its nodes without lines between them.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { layout, shortName, type Placed } from "./layout";
import { LinksOf } from "./links";
import { pairOf, type Broken, type Ends, type Link, type Model, type Node } from "./model";
import { counted } from "./words";

/** Most lines between nodes that a person can follow. */
const LINES_MAX = 600;

function loadClass(load: number): string {
  if (load <= 0) return "idle";
  if (load > 0.999) return "busiest";
  return load > 0.66 ? "high" : load > 0.33 ? "middle" : "low";
}

/** Links that can be chosen, and the one that is. */
export interface Choosing {
  chosen: Ends | undefined;
  /** The address at which a link is chosen. */
  hrefOf: (link: Ends) => string;
}

/** A network, with the loads of its links if there is a plan, and its faults. What is inside stands below the legend. */
export function NetworkDrawing({ model, broken, choosing, children }: { model: Model; broken?: Broken; choosing?: Choosing; children?: ComponentChildren }) {
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
  const isChoosing = choosing !== undefined;
  // What stays as it is is not compared again: a large network has thousands of elements.
  const machines = useMemo(() => boxes.map(({ name, ...box }) => (
    <g key={name}>
      <rect class="machine" {...box} rx={6} />
      <text class="machine-name" x={box.x + 8} y={box.y + 15}>{name}</text>
    </g>
  )), [boxes]);
  const wires = useMemo(() => hasLines && pairs.map(({ from, to, load }) => {
    const fault = broken?.links.get(pairOf(from, to));
    return (
      <line class={`wire ${hasPlan ? loadClass(load) : ""} ${fault ? "broken" : ""} ${chosen === from || chosen === to ? "chosen" : ""}`}
        x1={at[from]!.x} y1={at[from]!.y} x2={at[to]!.x} y2={at[to]!.y}>{fault && <title>{fault}</title>}</line>
    );
  }), [model, broken, chosen]);
  const targets = useMemo(() => hasLines && isChoosing && pairs.map(({ from, to }, line) => <line class="hit" data-line={line} x1={at[from]!.x} y1={at[from]!.y} x2={at[to]!.x} y2={at[to]!.y}><title>{`${model.nodes[from]!.id} → ${model.nodes[to]!.id}`}</title></line>), [model, isChoosing]);
  const spots = useMemo(() => model.nodes.map((node, index) => (
    <Spot node={node} index={index} at={at[index]!} tone={`${hasPlan && !hasLines ? loadClass(busiest[index]!) : ""} ${limit.has(index) ? "limit" : ""} ${noteOf(index) ? "broken" : ""} ${chosen === index ? "chosen" : ""}`} note={noteOf(index)} />
  )), [model, broken, chosen]);
  return (
    <div class="drawing">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} class={width < 700 ? "network small" : "network"} data-nodes={model.nodes.length}
        onClick={(event) => {
          const target = event.target as Element;
          const name = target.closest("[data-node]")?.getAttribute("data-node");
          const line = target.closest("[data-line]")?.getAttribute("data-line");
          if (line && choosing) location.hash = choosing.hrefOf(pairs[Number(line)]!);
          else setChosen(name ? Number(name) : undefined);
        }}>
        {machines}
        {wires}
        {targets}
        {choosing?.chosen && <Arrow from={at[choosing.chosen.from]!} to={at[choosing.chosen.to]!} />}
        {spots}
      </svg>
      <Legend hasPlan={hasPlan} hasLimit={limit.size > 0} hasFaults={faultCount > 0} hasLines={hasLines} />
      {children}
      <LinksOf model={model} chosen={chosen} choose={setChosen} hasPlan={hasPlan} {...(choosing ? { choosing } : {})} />
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

/** One line for both directions of a link, in the busier one. */
function bothWays(links: readonly Link[]): { from: number; to: number; load: number }[] {
  const pairs = new Map<string, { from: number; to: number; load: number }>();
  for (const { from, to, load } of links) {
    const key = pairOf(from, to);
    const known = pairs.get(key);
    if (known && load > known.load) Object.assign(known, { from, to, load });
    else if (!known) pairs.set(key, { from, to, load });
  }
  return [...pairs.values()].sort((a, b) => a.load - b.load);
}

/** The chosen link and its direction. */
function Arrow({ from, to }: { from: Placed; to: Placed }) {
  const turn = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI;
  const [x, y] = [from.x + (to.x - from.x) * 0.6, from.y + (to.y - from.y) * 0.6];
  return (
    <g class="arrow" aria-hidden="true">
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      <path d="M9 0L-7 8L-7 -8Z" transform={`translate(${x} ${y}) rotate(${turn})`} />
    </g>
  );
}

function Spot({ node, index, at, tone, note }: { node: Node; index: number; at: Placed; tone: string; note: string | undefined }) {
  const title = `${node.id}${node.rank === null ? " (switch)" : `, rank ${node.rank}`}${note ? `: ${note}` : ""}`;
  return (
    <g class={`spot ${node.rank === null ? "switch" : "rank"} ${tone}`} data-node={index}>
      <title>{title}</title>
      {node.rank === null ? <rect x={at.x - 12} y={at.y - 8} width={24} height={16} rx={3} /> : <circle cx={at.x} cy={at.y} r={10} />}
      <text x={at.x} y={at.y + (node.rank === null ? 2.5 : 3.5)}>{node.rank ?? shortName(node)}</text>
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
