// Planning jobs: those that run and wait, and those that have ended.
import { useContext } from "preact/hooks";
import { Actions } from "../actions";
import { amend, useAsked, type Route } from "../hooks";
import { type Operation, Operations, OperationState } from "../messages/canopy/v1/operations_pb";
import { Action, Badge, Bar, Choice, Empty, Facts, Field, Section, Shown, Table } from "../parts";
import { call, codeName, requestId } from "../rpc";
import { ago, clock, collective, counted, millis, priority, rate, reasonOf, seconds, short, state } from "../words";

const TONES: Record<number, string> = { [OperationState.RUNNING]: "busy", [OperationState.SUCCEEDED]: "good", [OperationState.FAILED]: "bad", [OperationState.CANCELLED]: "warn" };

function State({ of: { metadata } }: { of: Operation }) {
  const value = metadata?.state ?? OperationState.UNSPECIFIED;
  return <Badge tone={TONES[value] ?? ""}>{state(value)}</Badge>;
}

function Progress({ of: { metadata, done } }: { of: Operation }) {
  const progress = metadata?.progress;
  if (done || !progress?.stage) return <>–</>;
  const share = progress.total ? Number(progress.done) / Number(progress.total) : 0;
  return <Bar value={share} tone="busy" label={progress.total ? `${progress.stage}: ${progress.done} of ${progress.total}` : progress.stage} />;
}

function took({ metadata }: Operation): string {
  const [from, to] = [millis(metadata?.createTime), millis(metadata?.endTime)];
  return from === undefined ? "–" : seconds(Math.max(0, ((to ?? Date.now()) - from) / 1000));
}

function Cancel({ of: { name, done }, again }: { of: Operation; again: () => void }) {
  if (!useContext(Actions) || done) return null;
  const cancel = async () => {
    await call(Operations.method.cancelOperation, { name, requestId: requestId() });
    return "The job is cancelled.";
  };
  return <Action danger label="Cancel the job" confirm="Cancel it" act={cancel} onDone={again} question="The job stops, and every call that waits for it fails with OPERATION_CANCELLED." />;
}

export function JobsPage({ route }: { route: Route }) {
  const [filter, which, token] = ["filter", "state", "page"].map((key) => route.query.get(key) ?? "") as [string, string, string];
  const clauses = [filter && which ? `(${filter})` : filter, which].filter(Boolean).join(" AND ");
  const asked = useAsked(`jobs ${clauses} ${token}`, 1, (signal) => call(Operations.method.listOperations, { pageSize: 50, filter: clauses, pageToken: token }, { signal }));
  const change = (changes: Record<string, string>) => amend(route, { page: "", ...changes });
  const states: [string, string][] = [["", "all"], ["done=false", "unfinished"], ...["queued", "running", "succeeded", "failed", "cancelled"].map((name): [string, string] => [`state=${name}`, name])];
  return (
    <>
      <div class="filters" role="search">
        <Field wide label="Filter" value={filter} placeholder="collective=allreduce AND priority=repair" onChange={(value) => change({ filter: value })} />
        <Choice label="State" value={which} of={states} onChange={(value) => change({ state: value })} />
      </div>
      <Shown of={asked}>
        {(reply) => reply.operations.length === 0 ? (
          <Empty>{clauses ? "No job matches this filter." : "No job has run since the server started. Requests that the cache answers need no job."}</Empty>
        ) : (
          <>
            <Table label="Jobs" rows={reply.operations} keyOf={(job) => job.name}
              columns={[
                { head: "Job", cell: (job) => <a href={`#/jobs/${job.name.split("/")[1]}`}><code>{short(job.name)}</code></a> },
                { head: "State", cell: (job) => <State of={job} /> },
                { head: "Collective", cell: (job) => collective(job.metadata?.collective) },
                { head: "Priority", cell: (job) => priority(job.metadata?.priority ?? 0) },
                { head: "Progress", cell: (job) => <Progress of={job} /> },
                { head: "Waiting calls", cell: (job) => job.metadata?.waiters, number: true },
                { head: "Requested", cell: (job) => <span title={clock(job.metadata?.createTime)}>{ago(job.metadata?.createTime)}</span> },
                { head: "Time", cell: took, number: true },
                { head: "Result", cell: (job) => <Result of={job} /> },
              ]} />
            <div class="pages">
              <button type="button" disabled={!token} onClick={() => amend(route, { page: "" })}>First page</button>
              <button type="button" disabled={!reply.nextPageToken} onClick={() => amend(route, { page: reply.nextPageToken })}>Next page</button>
            </div>
          </>
        )}
      </Shown>
    </>
  );
}

function Result({ of: { result } }: { of: Operation }) {
  if (result.case === "response") return <a href={`#/${result.value.plan?.name}`}><code>{short(result.value.plan?.name ?? "")}</code></a>;
  if (result.case === "error") return <span title={result.value.message}>{reasonOf(result.value) || codeName(result.value.code)}</span>;
  return <>–</>;
}

export function JobPage({ name }: { name: string }) {
  const asked = useAsked(name, 1, (signal) => call(Operations.method.getOperation, { name }, { signal }));
  return (
    <Shown of={asked}>
      {(job) => {
        const { metadata } = job;
        const progress = metadata?.progress;
        return (
          <>
            <p class="subject"><code>{job.name}</code> <State of={job} /></p>
            <Section title="Job">
              <Facts of={[
                ["Collective", collective(metadata?.collective)],
                ["Priority", priority(metadata?.priority ?? 0)],
                ["Progress", <Progress of={job} />],
                ["Bound", progress?.bound && rate(progress.bound)],
                ["Best plan up to now", progress?.incumbent && rate(progress.incumbent)],
                ["Waiting calls", `${counted(metadata?.waiters ?? 0, "call")}${metadata?.detached ? "; goes on without callers" : ""}`],
                ["Requested", <span title={clock(metadata?.createTime)}>{ago(metadata?.createTime)}</span>],
                ["Time", took(job)],
                ["Request", <code>{metadata?.requestKey.slice(0, 32)}</code>],
                ["Tenant", metadata?.tenant],
              ]} />
            </Section>
            {job.result.case === "response" && <Section title="Plan"><p>The job made <a href={`#/${job.result.value.plan?.name}`}><code>{job.result.value.plan?.name}</code></a>: {rate(job.result.value.plan?.quality?.achieved)}.</p>
              {job.result.value.warnings.map(({ code, text }) => <p><Badge tone="warn">{code}</Badge> {text}</p>)}</Section>}
            {job.result.case === "error" && <Section title="Why there is no plan"><p>{job.result.value.message}</p><p class="codes"><code>{codeName(job.result.value.code)}</code> <code>{reasonOf(job.result.value)}</code></p></Section>}
            <Cancel of={job} again={asked.again} />
          </>
        );
      }}
    </Shown>
  );
}
