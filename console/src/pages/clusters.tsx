// Clusters and stored topologies: a map of machines and switches, their faults, and what single faults would cost.
import { useEffect, useMemo, useState } from "preact/hooks";
import { NetworkDrawing, useReader } from "../drawings";
import { amend, link, useAsked, type Route } from "../hooks";
import { Clusters } from "../messages/canopy/v1/clusters_pb";
import { Faults, type KnownFault } from "../messages/canopy/v1/faults_pb";
import { Collective } from "../messages/canopy/v1/plan_pb";
import { Planner } from "../messages/canopy/v1/planner_pb";
import { Topologies } from "../messages/canopy/v1/topologies_pb";
import { DocumentFormat } from "../messages/canopy/v1/topology_pb";
import { FaultKind, WhatIfOutcome, type WeighedFault, type WhatIfStarted } from "../messages/canopy/v1/what_if_pb";
import { pairOf, type Broken, type Model } from "../model";
import { Bar, Choice, Empty, Facts, Loading, Pages, Problem, Section, Shown, Table } from "../parts";
import { call, CallError, stream } from "../rpc";
import { ago, bytes, clock, count, counted, element, names, percent, rate, short } from "../words";
import { FaultsTable } from "./faults";

export function ClustersPage({ route }: { route: Route }) {
  const token = route.query.get("page") ?? "";
  const clusters = useAsked("clusters", 10, (signal) => call(Clusters.method.listClusters, { pageSize: 100 }, { signal }));
  const topologies = useAsked(`topologies ${token}`, 10, (signal) => call(Topologies.method.listTopologies, { pageSize: 50, pageToken: token, orderBy: "created desc" }, { signal }));
  return (
    <>
      <Section title="Clusters">
        <Shown of={clusters}>
          {(reply) => reply.clusters.length === 0 ? <Empty>No cluster is stored. <code>canopy cluster put</code> stores one under a name.</Empty> : (
            <Table label="Clusters" rows={reply.clusters} keyOf={(cluster) => cluster.name}
              columns={[
                { head: "Cluster", cell: (cluster) => <a href={`#/${cluster.name}`}>{cluster.name}</a> },
                { head: "Machines", cell: (cluster) => count(cluster.nodes), number: true },
                { head: "Ranks", cell: (cluster) => count(cluster.ranks), number: true },
                { head: "Switches", cell: (cluster) => count(cluster.switches), number: true },
                { head: "Size", cell: (cluster) => bytes(cluster.sizeBytes), number: true },
                { head: "Changed", cell: (cluster) => <span title={clock(cluster.updateTime)}>{ago(cluster.updateTime)}</span> },
              ]} />
          )}
        </Shown>
      </Section>
      <Section title="Topologies">
        <Shown of={topologies}>
          {(reply) => reply.topologies.length === 0 ? <Empty>No topology is stored. Leases and reports of faults store theirs, and so does <code>canopy topology put</code>.</Empty> : (
            <>
              <Table label="Topologies" rows={reply.topologies} keyOf={(topology) => topology.id}
                columns={[
                  { head: "Topology", cell: (topology) => <a href={`#/${topology.id}`}><code>{short(topology.id)}</code></a> },
                  { head: "Name", cell: (topology) => topology.name || "–" },
                  { head: "Ranks", cell: (topology) => count(topology.summary?.ranks ?? 0), number: true },
                  { head: "Nodes", cell: (topology) => count(topology.summary?.nodes ?? 0), number: true },
                  { head: "Links", cell: (topology) => count(topology.summary?.links ?? 0), number: true },
                  { head: "Stored", cell: (topology) => <span title={clock(topology.createTime)}>{ago(topology.createTime)}</span> },
                ]} />
              <Pages total={reply.totalSize} shown={reply.topologies.length} word="topology" next={reply.nextPageToken} isFirst={!token} onFirst={() => amend(route, { page: "" })} onNext={() => amend(route, { page: reply.nextPageToken })} />
            </>
          )}
        </Shown>
      </Section>
    </>
  );
}

export function ClusterPage({ name }: { name: string }) {
  const asked = useAsked(name, 0, (signal) => call(Clusters.method.getCluster, { name }, { signal }));
  return (
    <Shown of={asked}>
      {({ cluster, nodes }) => (
        <>
          <p class="subject">{name}</p>
          <Facts of={[["Machines", `${count(cluster?.nodes ?? 0)}: ${names(nodes, 8)}`], ["Ranks", count(cluster?.ranks ?? 0)], ["Switches", count(cluster?.switches ?? 0)], ["Changed", ago(cluster?.updateTime)]]} />
          <NetworkOf source={{ cluster: name }} machines={nodes} />
        </>
      )}
    </Shown>
  );
}

export function TopologyPage({ name }: { name: string }) {
  const asked = useAsked(name, 0, (signal) => call(Topologies.method.getTopology, { name }, { signal }));
  return (
    <Shown of={asked}>
      {({ topology }) => (
        <>
          <p class="subject">{topology?.name} <code>{name}</code></p>
          <Facts of={[["Ranks", count(topology?.summary?.ranks ?? 0)], ["Nodes", count(topology?.summary?.nodes ?? 0)], ["Links", count(topology?.summary?.links ?? 0)], ["Plans", <a href={link("plans", { filter: `topology=${topology?.summary?.hash}` })}>plans for this network</a>]]} />
          <NetworkOf source={{ topology: name }} machines={[]} />
        </>
      )}
    </Shown>
  );
}

type Source = { cluster: string } | { topology: string };

/** The document of a network, whose parts come one by one. */
async function documentOf(source: Source, signal: AbortSignal): Promise<Uint8Array> {
  const named = "cluster" in source ? { cluster: { cluster: source.cluster } } : { name: source.topology };
  const parts: Uint8Array[] = [];
  for (let [offset, size] = [0, 1]; offset < size; ) {
    const reply = await call(Topologies.method.getTopology, { ...named, format: DocumentFormat.JSON, offset: BigInt(offset) }, { signal, seconds: 60 });
    const part = reply.document!.content;
    parts.push(part);
    offset += part.length;
    size = part.length ? Number(reply.documentSizeBytes) : 0;
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

function NetworkOf({ source, machines }: { source: Source; machines: readonly string[] }) {
  const key = JSON.stringify(source);
  const text = useAsked(`document ${key}`, 0, (signal) => documentOf(source, signal));
  const faults = useAsked(`faults of ${key}`, 3, async (signal) => {
    const { faults: all } = await call(Faults.method.listFaults, { pageSize: 1000 }, { signal });
    const own = "cluster" in source ? source.cluster : source.topology;
    const here = new Set(machines);
    return all.filter((fault) => fault.topology === own || (!fault.topology && (here.size === 0 || here.has(fault.machines))));
  });
  const { model, problem } = useReader(text.data);
  const broken = useMemo(() => (model && faults.data ? marked(model, faults.data) : undefined), [model, faults.data]);
  return (
    <>
      <Section title="Map">
        {text.error && <Problem error={text.error} />}
        {problem && <Problem error={new CallError(2, problem)} title="The network cannot be drawn" />}
        {model ? <NetworkDrawing model={model} {...(broken ? { broken } : {})} /> : !text.error && !problem && <Loading what="Reading the network" />}
      </Section>
      <Section title="Faults">
        <Shown of={faults}>{(all) => all.length === 0 ? <Empty>No faults are known here.</Empty> : <FaultsTable faults={all} again={faults.again} />}</Shown>
      </Section>
      <WhatIf source={source} />
    </>
  );
}

/** Nodes and links that a fault concerns, with its name. */
function marked({ nodes }: Model, faults: readonly KnownFault[]): Broken {
  const found = new Map<number, string>();
  const links = new Map<string, string>();
  const index = new Map(nodes.map(({ id }, at) => [id, at]));
  const mark = (is: (node: Model["nodes"][number], index: number) => boolean, text: string) => nodes.forEach((node, index) => is(node, index) && found.set(index, found.has(index) ? `${found.get(index)}, ${text}` : text));
  const inMachine = (machine: string) => nodes.map((node, index) => (node.group === machine && node.rank !== null ? index : -1)).filter((index) => index >= 0);
  for (const { fault, text } of faults) {
    const target = fault?.target;
    const device = target?.case === "device" ? target.value : target?.case === "nic" ? target.value.device : undefined;
    if (device) {
      const own = inMachine(device.host)[device.index];
      mark((node, index) => (device.node ? node.id === device.node : index === own), text);
    } else if (target?.case === "link") links.set(pairOf(index.get(target.value.from) ?? -1, index.get(target.value.to) ?? -1), text);
    else if (target?.case === "host") mark((node) => node.group === target.value, text);
    else if (target?.case === "node" || target?.case === "switchName") mark((node) => node.id === target.value, text);
    else if (target?.case === "switchFeature") mark((node) => node.id === target.value.switchName, text);
  }
  return { nodes: found, links };
}

const COLLECTIVES: [string, string][] = Object.entries(Collective).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]) => [String(value), name.toLowerCase().replace(/_/g, "-")]);
const KINDS: [string, string][] = [["", "every kind"], ...Object.entries(FaultKind).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]): [string, string] => [String(value), name.toLowerCase().replace(/_/g, " ")])];

interface Weighing {
  started?: WhatIfStarted;
  weighed: number;
  groups: WeighedFault[];
  error?: CallError;
  isDone?: boolean;
}

/** Ranks single faults by the bound that each leaves. */
function WhatIf({ source }: { source: Source }) {
  const [collective, setCollective] = useState(String(Collective.ALLREDUCE));
  const [kind, setKind] = useState("");
  const [weighing, setWeighing] = useState<Weighing>();
  const [aborter, setAborter] = useState<AbortController>();
  // Ending the call ends the work.
  useEffect(() => () => aborter?.abort(), [aborter]);
  const go = async () => {
    aborter?.abort();
    const own = new AbortController();
    setAborter(own);
    let state: Weighing = { weighed: 0, groups: [] };
    const show = (change: Partial<Weighing>) => own.signal.aborted || setWeighing((state = { ...state, ...change }));
    show({});
    const topology = "cluster" in source ? { source: { case: "cluster" as const, value: { cluster: source.cluster } } } : { source: { case: "id" as const, value: source.topology } };
    const request = { request: { topology, collective: { kind: Number(collective) } }, kinds: kind ? [Number(kind)] : [] };
    try {
      for await (const { event } of stream(Planner.method.whatIf, request, { signal: own.signal, seconds: 3000 })) {
        if (event.case === "started") show({ started: event.value });
        else if (event.case === "progress") show({ weighed: event.value.weighed });
        else if (event.case === "weighed") show({ groups: [...state.groups, ...event.value.groups] });
      }
      show({ isDone: true });
    } catch (problem) {
      if (!own.signal.aborted) show({ error: problem instanceof CallError ? problem : new CallError(2, String(problem)) });
    }
  };
  const isBusy = weighing && !weighing.isDone && !weighing.error;
  return (
    <Section title="What if one element fails?">
      <div class="filters">
        <Choice label="Collective" value={collective} of={COLLECTIVES} onChange={setCollective} />
        <Choice label="Elements" value={kind} of={KINDS} onChange={setKind} />
        {isBusy ? <button type="button" onClick={() => { aborter?.abort(); setWeighing(undefined); }}>Stop</button> : <button type="button" class="primary" onClick={go}>Rank single faults</button>}
      </div>
      {weighing?.error && <Problem error={weighing.error} />}
      {isBusy && <Bar tone="busy" value={weighing.started ? weighing.weighed / Math.max(1, weighing.started.groups) : 0} label={weighing.started ? `${weighing.weighed} of ${counted(weighing.started.groups, "group")} of equal faults` : "Computing the bound"} />}
      {weighing?.isDone && (
        <>
          <p>Without another fault, the bound is {rate(weighing.started?.bound ?? "")}.</p>
          <Table label="Single faults, most harmful first" rows={weighing.groups.slice(0, 500)} keyOf={(group) => element(group.faults[0])}
            columns={[
              { head: "If this fails", cell: (group) => <code>{element(group.faults[0])}</code> },
              { head: "or any of", cell: (group) => group.alike > 1 ? <span title={group.faults.map(element).slice(0, 40).join(", ")}>{counted(group.alike - 1, "equal fault")}</span> : "–", number: true },
              { head: "Bound that remains", cell: (group) => outcome(group) },
              { head: "Of the present bound", cell: (group) => group.outcome === WhatIfOutcome.BOUNDED ? <Bar value={Number(group.ratio.split("/")[0]) / Number(group.ratio.split("/")[1] ?? 1)} label={percent(group.ratio)} /> : "0 %" },
            ]} />
        </>
      )}
    </Section>
  );
}

function outcome(group: WeighedFault): string {
  switch (group.outcome) {
    case WhatIfOutcome.BOUNDED:
      return rate(group.bound);
    case WhatIfOutcome.DISCONNECTED:
      return `network split in ${group.components}`;
    case WhatIfOutcome.TOO_FEW_RANKS:
      return "fewer than two ranks";
    default:
      return "root lost";
  }
}
