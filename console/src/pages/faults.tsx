// Elements that are broken or slow.
import { useContext } from "preact/hooks";
import { Actions } from "../actions";
import { amend, useAsked, type Route } from "../hooks";
import { Faults, FaultScope, FaultState, type KnownFault } from "../messages/canopy/v1/faults_pb";
import { Action, Badge, Choice, Empty, Field, Pages, Shown, Table } from "../parts";
import { call, requestId } from "../rpc";
import { ago, clock, counted, remaining, short } from "../words";

const SCOPES = ["topology", "placement", "host", "cluster"];

export function FaultsPage({ route }: { route: Route }) {
  const [filter, scope, sort, token] = ["filter", "scope", "sort", "page"].map((key) => route.query.get(key) ?? "") as [string, string, string, string];
  const clauses = [filter && scope ? `(${filter})` : filter, scope && `scope=${scope}`].filter(Boolean).join(" AND ");
  const asked = useAsked(`faults ${clauses} ${sort} ${token}`, 3, (signal) => call(Faults.method.listFaults, { pageSize: 100, filter: clauses, orderBy: sort, pageToken: token }, { signal }));
  const change = (changes: Record<string, string>) => amend(route, { page: "", ...changes });
  return (
    <>
      <div class="filters" role="search">
        <Field wide label="Filter" value={filter} placeholder="state=active AND severity=fatal" onChange={(value) => change({ filter: value })} />
        <Choice label="Belongs to" value={scope} of={[["", "anything"], ...SCOPES.map((name): [string, string] => [name, name])]} onChange={(value) => change({ scope: value })} />
      </div>
      <Shown of={asked}>
        {(reply) => reply.faults.length === 0 ? (
          <Empty>{clauses ? "No fault matches this filter." : "No faults are known. Monitors report them, or a person by `canopy faults report`."}</Empty>
        ) : (
          <>
            <FaultsTable faults={reply.faults} sort={sort} onSort={(value) => change({ sort: value })} again={asked.again} />
            <Pages total={reply.totalSize} shown={reply.faults.length} word="fault" next={reply.nextPageToken} isFirst={!token} onFirst={() => amend(route, { page: "" })} onNext={() => amend(route, { page: reply.nextPageToken })} />
          </>
        )}
      </Shown>
    </>
  );
}

const STATES: Record<number, [string, string]> = { [FaultState.ACTIVE]: ["active", "bad"], [FaultState.CLEARING]: ["clearing", "warn"], [FaultState.HELD]: ["flapping", "warn"] };

export function FaultsTable({ faults, sort, onSort, again }: { faults: readonly KnownFault[]; sort?: string; onSort?: (sort: string) => void; again: () => void }) {
  const mayAct = useContext(Actions);
  return (
    <Table label="Faults" rows={faults} keyOf={(fault) => `${fault.topology} ${fault.machines} ${fault.text}`} {...(sort === undefined ? {} : { sort })} {...(onSort ? { onSort } : {})}
      columns={[
        { head: "Element", by: "text", cell: (fault) => <code>{fault.text}</code> },
        { head: "Capacity", cell: (fault) => remaining(fault.fault) },
        { head: "State", by: "state", cell: (fault) => <Badge tone={STATES[fault.state]?.[1] ?? ""}>{STATES[fault.state]?.[0] ?? "unknown"}</Badge> },
        { head: "Belongs to", by: "scope", cell: (fault) => fault.topology ? <a href={`#/${fault.topology}`}>{fault.topology.startsWith("topologies/") ? `topology ${short(fault.topology)}` : fault.topology}</a> : `${(FaultScope[fault.scope] ?? "").toLowerCase()} ${fault.machines}` },
        { head: "Sources", cell: (fault) => fault.sources.join(", ") },
        { head: "Since", by: "since", cell: (fault) => <span title={clock(fault.sinceTime)}>{ago(fault.sinceTime)}</span> },
        { head: "Reported", by: "reported", cell: (fault) => <span title={clock(fault.reportedTime)}>{ago(fault.reportedTime)}</span> },
        ...(mayAct ? [{ head: "Action", cell: (fault: KnownFault) => <Clear fault={fault} again={again} /> }] : []),
      ]} />
  );
}

function Clear({ fault, again }: { fault: KnownFault; again: () => void }) {
  const clear = async () => {
    const reply = await call(Faults.method.clearFaults, { topology: fault.topology, faults: [fault.fault!], requestId: requestId() });
    return `${counted(reply.cleared, "fault")} cleared.`;
  };
  return <Action danger label="Clear the fault" confirm="Clear it" act={clear} onDone={again} question={<><code>{fault.text}</code> counts as healthy at once, whatever reported it, and earlier plans return. If it is still broken, its source reports it again.</>} />;
}
