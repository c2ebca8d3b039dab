// A table of links, busiest first.
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Choosing } from "./drawings";
import type { Link, Model } from "./model";
import { Table } from "./parts";
import { counted, percent, rate } from "./words";

/** Links that are listed at first, and that each further step adds. */
const [SHOWN, MORE] = [20, 100];

/** The busiest links, of the whole network or of one node. */
export function LinksOf({ model, chosen, choose, hasPlan, choosing }: { model: Model; chosen: number | undefined; choose: (node: number | undefined) => void; hasPlan: boolean; choosing?: Choosing }) {
  const own = useMemo(() => {
    const all = chosen === undefined ? [...model.links] : model.links.filter(({ from, to }) => from === chosen || to === chosen);
    return all.sort((a, b) => b.load - a.load);
  }, [model, chosen]);
  const [most, setMost] = useState(SHOWN);
  useEffect(() => setMost(SHOWN), [model, chosen]);
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
      <Table label={hasPlan ? "Busiest links" : "Links"} rows={own.slice(0, most)} keyOf={(link) => `${link.from}-${link.to}-${link.bandwidth}`}
        columns={[
          { head: "From", cell: (link) => name(link.from) },
          { head: "To", cell: (link) => name(link.to) },
          { head: "Rate", cell: (link) => rate(link.bandwidth), number: true },
          ...(hasPlan ? [{ head: "Load, of the busiest", cell: (link: Link) => percent(link.load), number: true }] : []),
          ...(choosing ? [{ head: "Use", cell: (link: Link) => <a href={choosing.hrefOf(link)} aria-current={choosing.chosen?.from === link.from && choosing.chosen.to === link.to ? "true" : undefined}>What uses it<span class="hidden"> (link from {name(link.from)} to {name(link.to)})</span></a> }] : []),
        ]} />
      {own.length > most && <div class="pages"><span>{most} of {counted(own.length, "link")}</span><button type="button" onClick={() => setMost(most + MORE)}>Show more links</button></div>}
    </div>
  );
}
