// What uses a chosen link of a plan: its trees, sends or paths, and what each of them carries.
import { useEffect, useState } from "preact/hooks";
import { link, type Route } from "./hooks";
import type { Ends, LinkUses, Model, Use } from "./model";
import { Empty, Loading, Section, Table, type Column } from "./parts";
import type { Reading } from "./reading";
import { count, counted, percent } from "./words";

/** Uses that are listed at first, and that each further step adds. */
const [SHOWN, MORE] = [20, 100];
/** Most bars of the drawing by step. */
const BARS_MAX = 200;

/** The link that the address names as `from>to`, if the network has it. */
export function linkOf({ nodes, links }: Model, route: Route): Ends | undefined {
  const [from, to] = (route.query.get("link") ?? "").split(">").map((id) => nodes.findIndex((node) => node.id === id)) as [number, number | undefined];
  return links.some((link) => link.from === from && link.to === to) ? { from, to: to! } : undefined;
}

export function linkWords({ nodes }: Model, { from, to }: Ends): string {
  return `${nodes[from]!.id} → ${nodes[to]!.id}`;
}

/** The address of the page of a plan with a link chosen. */
export function hrefOfLink({ nodes }: Model, route: Route, { from, to }: Ends): string {
  return link(route.path.join("/"), { view: "links", link: `${nodes[from]!.id}>${nodes[to]!.id}` });
}

export function UsesOfLink({ model, reading, route, chosen }: { model: Model; reading: Reading; route: Route; chosen: Ends }) {
  const [answer, setAnswer] = useState<{ of: string; uses?: LinkUses; problem?: string }>();
  const [most, setMost] = useState(SHOWN);
  const key = `${chosen.from} ${chosen.to}`;
  useEffect(() => {
    let isLate = false;
    setMost(SHOWN);
    reading.uses(chosen).then(
      (uses) => isLate || setAnswer({ of: key, uses }),
      (problem: Error) => isLate || setAnswer({ of: key, problem: problem.message }),
    );
    return () => void (isLate = true);
  }, [model, key]);
  const uses = answer?.of === key ? answer.uses : undefined;
  const hasOpposite = model.links.some(({ from, to }) => from === chosen.to && to === chosen.from);
  return (
    <Section title={`What uses ${linkWords(model, chosen)}`} aside={
      <span class="asides">
        {hasOpposite && <a href={hrefOfLink(model, route, { from: chosen.to, to: chosen.from })}>Opposite direction</a>}
        <a href={link(route.path.join("/"), { view: "links" })}>Choose no link</a>
      </span>
    }>
      {answer?.of === key && answer.problem && <p role="alert">{answer.problem}</p>}
      {!uses ? !answer?.problem && <Loading what="Counting" /> : uses.count === 0 ? <Empty>Nothing in this plan uses this link.</Empty> : (
        <>
          <p role="status">{inWords(model, chosen, uses)}</p>
          <BySteps uses={uses} what={model.shape === "forest" ? "depth" : "step"} />
          <Table label={`Uses of ${linkWords(model, chosen)}`} rows={uses.uses.slice(0, most)} keyOf={(use) => `${use.tree} ${use.step} ${use.from} ${use.to}`} columns={columnsOf(model, route, uses)} />
          {uses.uses.length > most && <div class="pages"><span>{most} of {count(uses.count)}</span><button type="button" onClick={() => setMost(most + MORE)}>Show more</button></div>}
          {uses.uses.length <= most && uses.count > uses.uses.length && <p>The other {count(uses.count - uses.uses.length)} carry no more than these.</p>}
        </>
      )}
    </Section>
  );
}

function nameOf({ shape }: Model): string {
  return shape === "forest" ? "tree" : shape === "steps" ? "send" : "path";
}

function inWords(model: Model, chosen: Ends, uses: LinkUses): string {
  const load = model.links.find(({ from, to }) => from === chosen.from && to === chosen.to)!.load;
  const carried = `${counted(uses.uses.length < uses.count ? Math.round(uses.total) : uses.uses.reduce((sum, { chunks }) => sum + chunks, 0), "chunk")}`;
  const busy = load > 0.999 ? "It is one of the busiest links." : `It is busy for ${percent(load)} of the time that the busiest link needs.`;
  return `${counted(uses.count, nameOf(model))} ${uses.count === 1 ? "uses" : "use"} this link and ${uses.count === 1 ? "carries" : "carry"} ${carried} over it; a share has ${counted(model.chunks, "chunk")}. ${busy}`;
}

function columnsOf(model: Model, route: Route, { uses, total }: LinkUses): Column<Use>[] {
  const rank = (index: number) => <span title={`rank ${index}`}>{model.nodes[index]?.id}</span>;
  const isWeighted = uses.some(({ amount, chunks }) => amount !== chunks);
  const parts: Record<string, Column<Use>[]> = {
    forest: [
      { head: "Tree", cell: ({ tree }) => <a href={link(route.path.join("/"), { view: "trees", tree: String(tree + 1), link: route.query.get("link") ?? "" })}>tree {tree + 1}</a> },
      { head: "Action", cell: ({ tree }) => model.trees[tree]?.phase },
      { head: "Root", cell: ({ tree }) => rank(model.trees[tree]?.root ?? 0) },
      { head: "Hops over the link", cell: ({ hops }) => count(hops), number: true },
    ],
    steps: [
      { head: "Step", cell: ({ step }) => step, number: true },
      { head: "From", cell: ({ from }) => rank(from) },
      { head: "To", cell: ({ to }) => rank(to) },
    ],
    flow: [
      { head: "Source", cell: ({ from }) => rank(from) },
      { head: "Destination", cell: ({ to }) => rank(to) },
      { head: "Step", cell: ({ step }) => step, number: true },
    ],
  };
  return [
    ...(parts[model.shape] ?? parts["flow"]!),
    { head: "Chunks", cell: ({ chunks }) => count(chunks), number: true },
    ...(isWeighted ? [{ head: "Chunks, by weight of the share", cell: ({ amount }: Use) => count(amount), number: true }] : []),
    { head: "Part of the link's load", cell: ({ amount }) => percent(amount / total), number: true },
  ];
}

/** What the link carries by step. */
function BySteps({ uses: { bySteps, total }, what }: { uses: LinkUses; what: string }) {
  if (bySteps.length < 2) return null;
  const shown = bySteps.slice(0, BARS_MAX);
  const most = Math.max(...shown);
  const [width, height] = [640, 60];
  const bar = width / shown.length;
  const at = shown.indexOf(most);
  return (
    <>
      <p class="hint">What it carries, by {what}:</p>
      <svg class="by-steps" viewBox={`0 0 ${width} ${height + 16}`} role="img" aria-label={`What the link carries by ${what}: most, ${percent(most / total)}, at ${what} ${at}`}>
        {shown.map((amount, step) => amount > 0 && <rect class="cell" x={step * bar} y={height - (amount / most) * height} width={Math.max(1, bar - 2)} height={(amount / most) * height}><title>{`${what} ${step}: ${count(amount)} chunks`}</title></rect>)}
        {shown.map((_, step) => step % Math.ceil(shown.length / 20) === 0 && <text class="axis under" x={(step + 0.5) * bar} y={height + 13}>{step}</text>)}
      </svg>
    </>
  );
}
