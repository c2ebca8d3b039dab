// The server at a glance.
import { useContext } from "preact/hooks";
import { Actions } from "../actions";
import { useAsked } from "../hooks";
import { Faults } from "../messages/canopy/v1/faults_pb";
import { Leases } from "../messages/canopy/v1/leases_pb";
import { type QueueStatus, Server, type ServerStatus, type SharingServer } from "../messages/canopy/v1/server_pb";
import { Action, Badge, Bar, Facts, Figure, Section, Shown, Table } from "../parts";
import { call, requestId } from "../rpc";
import { bytes, count, counted, format, lasting, priority } from "../words";
import { Live } from "./live";

export function OverviewPage() {
  const asked = useAsked("overview", 2, async (signal) => {
    const options = { signal };
    const [status, queue] = await Promise.all([
      call(Server.method.getStatus, {}, options),
      call(Server.method.getQueue, {}, options),
    ]);
    // Some callers may not list these; the rest of the page does not need them.
    const [faults, leases] = await Promise.all([
      call(Faults.method.listFaults, { pageSize: 1 }, options).then((reply) => reply.totalSize, () => undefined),
      call(Leases.method.listLeases, { pageSize: 1 }, options).then((reply) => reply.totalSize, () => undefined),
    ]);
    return { status, queue, faults, leases };
  });
  return (
    <Shown of={asked}>
      {({ status, queue, faults, leases }) => (
        <>
          <Head status={status} faults={faults} leases={leases} isOld={asked.error !== undefined} />
          <Live />
          <Queue queue={queue} workers={status.limits?.workers ?? 0} />
          <Cache status={status} />
          <Servers servers={status.servers} version={status.version} />
          <About status={status} />
          <Drain again={asked.again} />
        </>
      )}
    </Shown>
  );
}

function Head({ status, faults, leases, isOld }: { status: ServerStatus; faults: bigint | undefined; leases: bigint | undefined; isOld: boolean }) {
  const { counts, limits } = status;
  const [health, tone] = isOld ? ["no answer", "bad"] : status.draining ? ["draining", "warn"] : ["ready", "good"];
  return (
    <div class="figures">
      <Figure label="Health" value={health} tone={tone} note={`up for ${lasting(status.uptime)}`} />
      <Figure label="Jobs" value={count(counts?.running ?? 0n)} note={`${counts?.waiting ?? 0} waiting`} href="#/jobs" />
      <Figure label="Workers" value={`${counts?.running ?? 0} of ${limits?.workers ?? 0}`} note="busy" />
      <Figure label="Plans" value={count(counts?.plans ?? 0n)} note={`${counts?.pinnedPlans ?? 0} pinned`} href="#/plans" />
      <Figure label="Faults" value={faults === undefined ? "–" : count(faults)} note={faults === undefined ? "you may not list them" : "known"} href="#/faults" tone={faults ? "warn" : ""} />
      <Figure label="Leases" value={leases === undefined ? "–" : count(leases)} note={leases === undefined ? "you may not list them" : "held"} href="#/leases" />
    </div>
  );
}

function Queue({ queue, workers }: { queue: QueueStatus; workers: number }) {
  const share = Number(queue.heldBytes) / Math.max(1, Number(queue.heldBytesMax));
  const length = Number(queue.waiting) / Math.max(1, Number(queue.lengthMax));
  return (
    <Section title="Queue">
      <Table label="Queue by priority" rows={queue.priorities} keyOf={(row) => String(row.priority)}
        columns={[
          { head: "Priority", cell: (row) => priority(row.priority) },
          { head: "Waiting", cell: (row) => count(row.waiting), number: true },
          { head: "Running", cell: (row) => count(row.running), number: true },
        ]} />
      <Facts of={[
        ["Places", <Bar value={length} label={`${count(queue.waiting)} of ${count(queue.lengthMax)}`} />],
        ["Memory of requests", <Bar value={share} label={`${bytes(queue.heldBytes)} of ${bytes(queue.heldBytesMax)}`} />],
        ["Workers", counted(workers, "planning thread")],
      ]} />
    </Section>
  );
}

function Cache({ status: { counts } }: { status: ServerStatus }) {
  if (!counts) return null;
  return (
    <Section title="Cache">
      <Facts of={[
        ["Plans", `${count(counts.plans)}, ${bytes(counts.planBytes)}`],
        ["Schedules kept for equal shapes", `${count(counts.schedules)}, ${bytes(counts.scheduleBytes)}`],
        ["Topologies", `${count(counts.topologies)}, ${bytes(counts.topologyBytes)}`],
        ["Searches started", count(counts.syntheses)],
        ["Refusals remembered", `${count(counts.refusals)}, served ${counted(counts.refusalsServed, "time")}`],
        ["Damaged records", counts.corruptions ? <Badge tone="bad">{`${counts.corruptions} in quarantine`}</Badge> : "0"],
      ]} />
    </Section>
  );
}

/** The servers that share a database. */
function Servers({ servers, version }: { servers: SharingServer[]; version: string }) {
  if (servers.length === 0) return null;
  const classes = new Set(servers.map((server) => server.class));
  return (
    <Section title="Servers of this database">
      {classes.size > 1 && (
        <p>
          <Badge tone="warn">{`${classes.size} classes`}</Badge> Servers do jobs of their own class only. This is as it should be
          during an upgrade to or from version {version}.
        </p>
      )}
      <Table label="Servers" rows={servers} keyOf={(row) => row.name}
        columns={[
          { head: "Server", cell: (row) => <>{row.name} {row.answers && <Badge>answers</Badge>}</> },
          { head: "Role", cell: (row) => row.role || "unknown" },
          { head: "Class", cell: (row) => row.class },
          { head: "Takes part for", cell: (row) => lasting(row.age) },
          { head: "Heard", cell: (row) => `${lasting(row.heardAgo)} ago` },
          { head: "Jobs", cell: (row) => count(row.running), number: true },
        ]} />
    </Section>
  );
}

function About({ status }: { status: ServerStatus }) {
  const formats = status.formats.map((one) => format(one.format) + (one.profiles.length ? ` (${one.profiles.join(", ")})` : ""));
  return (
    <Section title="Server">
      <Facts of={[
        ["Version", status.version],
        ["Longest deadline", lasting(status.limits?.maxDeadline)],
        ["Largest topology", `${count(status.limits?.nodesMax ?? 0n)} nodes, ${count(status.limits?.linksMax ?? 0n)} links`],
        ["Formats", formats.join("; ")],
        ["Algorithms", status.algorithms.join(", ")],
        ["Console", <a href="./licenses.txt">licences of its packages</a>],
      ]} />
    </Section>
  );
}

function Drain({ again }: { again: () => void }) {
  if (!useContext(Actions)) return null;
  const drain = async () => {
    const { unfinished } = await call(Server.method.drain, { requestId: requestId() });
    return `The server drains; ${counted(unfinished, "unfinished job")}.`;
  };
  return (
    <Section title="Shut down">
      <Action danger label="Drain the server" confirm="Drain it" act={drain} onDone={again}
        question="The server refuses new requests, lets running ones end, and exits. Its service manager may start it again." />
    </Section>
  );
}
