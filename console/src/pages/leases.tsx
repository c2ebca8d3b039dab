// Leases, and new plans for them as they come.
import { useContext, useEffect, useState } from "preact/hooks";
import { Actions } from "../actions";
import { amend, useAsked, type Route } from "../hooks";
import { type Lease, type LeasedPlan, Leases, type ReplanEvent, ReplanStage } from "../messages/canopy/v1/leases_pb";
import { Action, Badge, Empty, Facts, Field, Pages, Section, Shown, Table } from "../parts";
import { call, CallError, OUT_OF_RANGE, PERMISSION_DENIED, requestId, stream, UNAUTHENTICATED } from "../rpc";
import { ago, clock, counted, element, lasting, names, percent, priority, rate, reasonOf, short } from "../words";

const EVENTS_MAX = 200;
/** Pause before a stream that ended is opened again. */
const PAUSE_MS = 1000;

/** Events from now on, newest first, and whether the stream is open. */
function useReplans(filter: { lease?: string }, onEvent: () => void): { events: ReplanEvent[]; isOpen: boolean; error: CallError | undefined } {
  const [events, setEvents] = useState<ReplanEvent[]>([]);
  const [isOpen, setOpen] = useState(false);
  const [error, setError] = useState<CallError>();
  useEffect(() => {
    const aborter = new AbortController();
    const watch = async () => {
      for (let token = ""; !aborter.signal.aborted; ) {
        try {
          setOpen(true);
          for await (const event of stream(Leases.method.watchLeases, { resumeToken: token, lease: filter.lease ?? "" }, { signal: aborter.signal, seconds: 3000 })) {
            token = event.resumeToken || token;
            setError(undefined);
            if (event.event.case === "idle" || event.event.case === "started") continue;
            setEvents((before) => [event, ...before].slice(0, EVENTS_MAX));
            onEvent();
          }
        } catch (problem) {
          if (aborter.signal.aborted) return;
          const failed = problem instanceof CallError ? problem : new CallError(2, String(problem));
          if (failed.code === OUT_OF_RANGE) token = "";
          // A stream ends at its deadline, and goes on from its token.
          else if (failed.code !== 4) setError(failed);
          if (failed.code === PERMISSION_DENIED || failed.code === UNAUTHENTICATED) return setOpen(false);
        }
        setOpen(false);
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    };
    void watch();
    return () => aborter.abort();
  }, [filter.lease]);
  return { events, isOpen, error };
}

function Live({ lease, again }: { lease?: string; again: () => void }) {
  const { events, isOpen, error } = useReplans(lease ? { lease } : {}, again);
  return (
    <Section title="New plans, live" aside={<Badge tone={isOpen ? "good" : "bad"}>{isOpen ? "watching" : "not connected"}</Badge>}>
      {error && !isOpen && <p role="alert">{error.message}</p>}
      {events.length === 0 ? <Empty>Nothing has happened since you opened this page. When a fault hits a plan of a lease, its replacement appears here.</Empty> : (
        <ol class="events" aria-live="polite">
          {events.map((event) => <li key={String(event.sequence)}><Event of={event} /></li>)}
        </ol>
      )}
    </Section>
  );
}

const STAGES: Record<number, string> = { [ReplanStage.PRECOMPUTED]: "made in advance", [ReplanStage.REPAIRED]: "repaired", [ReplanStage.STAND_IN]: "provisional", [ReplanStage.OPTIMUM]: "searched", [ReplanStage.RESTORED]: "restored" };

function Event({ of }: { of: ReplanEvent }) {
  const { event, faults, job, eventTime } = of;
  const because = faults.length ? ` because of ${names(faults.map(element), 4)}` : "";
  const plan = (name: string) => <a href={`#/${name}`}><code>{short(name)}</code></a>;
  return (
    <>
      <time title={clock(eventTime)}>{clock(eventTime).slice(11, 19)}</time> <strong>{job}</strong>{" "}
      {event.case === "superseded" && <><Badge tone={event.value.isFinal ? "good" : "warn"}>{STAGES[event.value.stage] ?? "replaced"}</Badge> {plan(event.value.newPlan)} replaces {plan(event.value.oldPlan)}{because}: {rate(event.value.achieved)}, {percent(event.value.optimality)} of optimal, after {lasting(event.value.elapsed)}{event.value.survivors.length ? `, ${event.value.survivors.length} ranks survive` : ""}</>}
      {event.case === "lost" && <><Badge tone="bad">lost</Badge> {plan(event.value.oldPlan)} has no replacement{because}: {event.value.error?.message}</>}
      {event.case === "expired" && <><Badge tone="warn">expired</Badge> the lease was not renewed in time</>}
    </>
  );
}

function PlanOf({ of: { original, current, isReplanning, error } }: { of: LeasedPlan }) {
  return (
    <span class="leased">
      {current ? <a href={`#/${current}`}><code>{short(current)}</code></a> : <Badge tone="bad">{reasonOf(error) || "no plan"}</Badge>}
      {current && current !== original && <Badge tone="warn">replaced</Badge>}
      {isReplanning && <Badge tone="busy">planning</Badge>}
    </span>
  );
}

export function LeasesPage({ route }: { route: Route }) {
  const [filter, sort, token] = ["filter", "sort", "page"].map((key) => route.query.get(key) ?? "") as [string, string, string];
  const asked = useAsked(`leases ${filter} ${sort} ${token}`, 3, (signal) => call(Leases.method.listLeases, { pageSize: 50, filter, orderBy: sort, pageToken: token }, { signal }));
  const change = (changes: Record<string, string>) => amend(route, { page: "", ...changes });
  return (
    <>
      <div class="filters" role="search"><Field wide label="Filter" value={filter} placeholder="replanned=true" onChange={(value) => change({ filter: value })} /></div>
      <Shown of={asked}>
        {(reply) => reply.leases.length === 0 ? <Empty>{filter ? "No lease matches this filter." : <>No job holds a lease. <code>canopy job fetch --lease</code> records which plans a job uses.</>}</Empty> : (
          <>
            <Table label="Leases" rows={reply.leases} keyOf={(lease) => lease.name} sort={sort} onSort={(value) => change({ sort: value })}
              columns={[
                { head: "Job", by: "job", cell: (lease) => <a href={`#/${lease.name}`}>{lease.job}</a> },
                { head: "Plans", cell: (lease) => lease.plans.slice(0, 4).map((plan) => <PlanOf of={plan} />) },
                { head: "Topology", by: "topology", cell: (lease) => <a href={`#/${lease.topology}`}><code>{short(lease.topology)}</code></a> },
                { head: "Priority", by: "priority", cell: (lease) => priority(lease.priority) },
                { head: "Acquired", by: "created", cell: (lease) => <span title={clock(lease.createTime)}>{ago(lease.createTime)}</span> },
                { head: "Expires", by: "expires", cell: (lease) => <span title={clock(lease.expireTime)}>{ago(lease.expireTime)}</span> },
                { head: "Tenant", cell: (lease) => lease.tenant || "–" },
              ]} />
            <Pages total={reply.totalSize} shown={reply.leases.length} word="lease" next={reply.nextPageToken} isFirst={!token} onFirst={() => amend(route, { page: "" })} onNext={() => amend(route, { page: reply.nextPageToken })} />
          </>
        )}
      </Shown>
      <Live again={asked.again} />
    </>
  );
}

export function LeasePage({ name }: { name: string }) {
  const asked = useAsked(name, 3, (signal) => call(Leases.method.getLease, { name }, { signal }));
  return (
    <>
      <Shown of={asked}>{(lease) => <One lease={lease} />}</Shown>
      <Live lease={name} again={asked.again} />
    </>
  );
}

function One({ lease }: { lease: Lease }) {
  return (
    <>
      <p class="subject">{lease.job} <code>{lease.name}</code></p>
      <Facts of={[
        ["Topology", <a href={`#/${lease.topology}`}><code>{short(lease.topology)}</code></a>],
        ["Priority", priority(lease.priority)],
        ["Acquired", ago(lease.createTime)],
        ["Expires", ago(lease.expireTime)],
        ["Tenant", lease.tenant],
      ]} />
      <Section title="Plans">
        <Table label="Plans of the lease" rows={lease.plans} keyOf={(plan) => plan.original}
          columns={[
            { head: "In use", cell: (plan) => <PlanOf of={plan} /> },
            { head: "For the healthy network", cell: (plan) => <a href={`#/${plan.original}`}><code>{short(plan.original)}</code></a> },
            { head: "Goes around", cell: (plan) => plan.faults.join(", ") || "nothing" },
            { head: "Surviving ranks", cell: (plan) => plan.survivors.length || "all", number: true },
            { head: "Problem", cell: (plan) => plan.error?.message ?? "–" },
          ]} />
      </Section>
      <Release lease={lease} />
    </>
  );
}

function Release({ lease: { name, job } }: { lease: Lease }) {
  if (!useContext(Actions)) return null;
  const release = async () => {
    const { released } = await call(Leases.method.releaseLease, { name, requestId: requestId() });
    location.hash = "#/leases";
    return `${counted(released, "lease")} released.`;
  };
  return (
    <Section title="Actions">
      <Action danger label="Release the lease" confirm="Release it" act={release}
        question={<>When a fault hits a plan of job <strong>{job}</strong>, the server no longer plans again and notifies nobody. The plans stay in the cache.</>} />
    </Section>
  );
}
