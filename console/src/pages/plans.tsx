// Cached plans: filter, order, and choose two to compare.
import { useState } from "preact/hooks";
import { amend, link, useAsked, type Route } from "../hooks";
import { Plans } from "../messages/canopy/v1/plans_pb";
import { Badge, Choice, Empty, Field, Pages, Shown, Table } from "../parts";
import { call } from "../rpc";
import { ago, bare, bytes, clock, collective, count, format, percent, short } from "../words";

const COLLECTIVES = ["allgather", "reduce-scatter", "allreduce", "broadcast", "reduce", "gather", "scatter", "all-to-all"];

export function PlansPage({ route }: { route: Route }) {
  const [filter, kind, sort, token] = ["filter", "collective", "sort", "page"].map((key) => route.query.get(key) ?? "") as [string, string, string, string];
  const clauses = [filter && kind ? `(${filter})` : filter, kind && `collective=${kind}`].filter(Boolean).join(" AND ");
  const asked = useAsked(`plans ${clauses} ${sort} ${token}`, 5, (signal) =>
    call(Plans.method.listPlans, { pageSize: 50, filter: clauses, orderBy: sort || "last_used desc", pageToken: token }, { signal }),
  );
  const [chosen, setChosen] = useState<string[]>([]);
  const choose = (id: string) => setChosen((before) => (before.includes(id) ? before.filter((one) => one !== id) : [...before.slice(-1), id]));
  const change = (changes: Record<string, string>) => amend(route, { page: "", ...changes });
  return (
    <>
      <div class="filters" role="search">
        <Field wide label="Filter" value={filter} placeholder="ranks>=64 AND pinned=true" onChange={(value) => change({ filter: value })} />
        <Choice label="Collective" value={kind} of={[["", "all"], ...COLLECTIVES.map((name): [string, string] => [name, name])]} onChange={(value) => change({ collective: value })} />
        {chosen.length === 2 ? <a class="button primary" href={link("compare", { a: bare(chosen[0]!), b: bare(chosen[1]!) })}>Compare two plans</a> : <span class="hint">Choose two plans to compare</span>}
      </div>
      <Shown of={asked}>
        {(reply) => reply.plans.length === 0 ? (
          <Empty>{clauses ? "No plan matches this filter." : <>The cache is empty. A plan appears here once a client asks for one, for example by <code>canopy plan ring:8 --collective allgather</code>.</>}</Empty>
        ) : (
          <>
            <Table label="Plans" rows={reply.plans} keyOf={(plan) => plan.name} sort={sort} onSort={(value) => change({ sort: value })}
              columns={[
                { head: "Compare", cell: (plan) => <input type="checkbox" aria-label={`Compare ${short(plan.name)}`} checked={chosen.includes(plan.name)} onChange={() => choose(plan.name)} /> },
                { head: "Plan", by: "name", cell: (plan) => <><a href={`#/${plan.name}`}><code>{short(plan.name)}</code></a>{plan.supersededBy && <Badge tone="warn">provisional</Badge>}</> },
                { head: "Collective", by: "collective", cell: (plan) => collective(plan.collective) },
                { head: "Network", by: "network", cell: (plan) => <>{plan.network || <code>{plan.topologyHash.slice(0, 12)}</code>}{plan.without && <> without {plan.without}</>}</> },
                { head: "Ranks", by: "ranks", cell: (plan) => count(plan.ranks), number: true },
                { head: "Algorithm", by: "algorithm", cell: (plan) => plan.algorithm },
                { head: "Of optimal", by: "optimality", cell: (plan) => <span title={plan.optimality?.exact}>{percent(plan.optimality)}</span>, number: true },
                { head: "Size", by: "size_bytes", cell: (plan) => bytes(plan.sizeBytes), number: true },
                { head: "Uses", by: "hits", cell: (plan) => count(plan.hits), number: true },
                { head: "Last used", by: "last_used", cell: (plan) => <span title={clock(plan.lastUseTime)}>{ago(plan.lastUseTime)}</span> },
                { head: "Files", cell: (plan) => plan.formats.map(format).join(", ") },
                { head: "Pinned", by: "pinned", cell: (plan) => plan.pinned && <Badge tone="good">pinned</Badge> },
              ]} />
            <Pages total={reply.totalSize} shown={reply.plans.length} word="plan" next={reply.nextPageToken} isFirst={!token}
              onFirst={() => amend(route, { page: "" })} onNext={() => amend(route, { page: reply.nextPageToken })} />
          </>
        )}
      </Shown>
    </>
  );
}
