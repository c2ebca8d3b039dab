// The drawing of one tree of a plan.
import { useEffect, useMemo, useState } from "preact/hooks";
import { amend, link, type Route } from "./hooks";
import type { Placed } from "./layout";
import { linkOf, linkWords } from "./linkuses";
import type { Hops, Model } from "./model";
import { Choice, Empty, Loading } from "./parts";
import type { Reading } from "./reading";
import { counted } from "./words";

/** Most trees that a person can choose from. */
const CHOICES_MAX = 2000;

/** One tree of a plan, from its root on the left; its hops over the chosen link stand out. */
export function TreeDrawing({ model, reading, route }: { model: Model; reading: Reading; route: Route }) {
  const index = Math.min(Math.max(0, Math.floor(Number(route.query.get("tree") ?? "1")) - 1 || 0), Math.max(0, model.trees.length - 1));
  const chosen = linkOf(model, route);
  const [hops, setHops] = useState<{ index: number; hops: Hops }>();
  useEffect(() => {
    let isLate = false;
    if (model.trees.length) reading.tree(index, chosen).then((found) => isLate || setHops({ index, hops: found }), () => undefined);
    return () => void (isLate = true);
  }, [model, index, chosen?.from, chosen?.to]);
  const stated = hops && model.trees[hops.index];
  const drawn = useMemo(() => (hops && stated ? treeLayout(hops.hops, stated.root, stated.phase === "reduce") : undefined), [hops]);
  if (model.trees.length === 0) return <Empty>This schedule is in {model.shape === "steps" ? "steps" : "paths"}, not in trees.</Empty>;
  const options = model.trees.map(({ phase, root, multiplicity }, at): [string, string] => [
    String(at + 1), `${at + 1}: ${phase} ${phase === "reduce" ? "to" : "from"} rank ${root}${multiplicity > 1 ? ` (${multiplicity} equal trees)` : ""}`,
  ]);
  const crossing = drawn?.edges.filter(([, , crosses]) => crosses).length ?? 0;
  const about = chosen && `${counted(crossing, "hop")} of this tree ${crossing === 1 ? "crosses" : "cross"} the link ${linkWords(model, chosen)}`;
  return (
    <div class="drawing">
      <div class="filters">
        <Choice label="Tree" value={String(index + 1)} of={options.filter((_, at) => at < CHOICES_MAX || at === index)} onChange={(value) => amend(route, { tree: value })} />
        {chosen && drawn && <span class="hint" role="status">{about}. <a href={link(route.path.join("/"), { view: "links", link: route.query.get("link") ?? "" })}>All that use this link</a></span>}
      </div>
      {!drawn || !stated ? <Loading /> : (
        <svg class="tree" viewBox={`0 0 ${drawn.width} ${drawn.height}`} role="img" aria-label={`Tree of rank ${stated.root}: ${counted(drawn.at.size, "rank")}, depth ${drawn.depth}${about ? `; ${about}` : ""}`}>
          {drawn.edges.map(([from, to, crosses]) => {
            const [a, b] = [drawn.at.get(from)!, drawn.at.get(to)!];
            return <path class={crosses ? "branch crossing" : "branch"} d={`M${a.x} ${a.y}C${(a.x + b.x) / 2} ${a.y} ${(a.x + b.x) / 2} ${b.y} ${b.x} ${b.y}`} />;
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
  const edges = hops.map(([from, to, crosses]): [number, number, boolean] => (towardsRoot ? [to, from, crosses] : [from, to, crosses]));
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
