// A stored network: a map of its machines and switches, their faults, and what single faults would cost.
import { useMemo } from "preact/hooks";
import { NetworkDrawing } from "../drawings";
import { useAsked } from "../hooks";
import { hasMachine, marked } from "../marks";
import { Faults, type KnownFault } from "../messages/canopy/v1/faults_pb";
import { Networks } from "../messages/canopy/v1/networks_pb";
import { DocumentFormat } from "../messages/canopy/v1/topology_pb";
import { Empty, Loading, Problem, Section, Shown } from "../parts";
import { useReader } from "../reading";
import { call, CallError } from "../rpc";
import { counted } from "../words";
import { FaultsTable } from "./faults";
import { WhatIf } from "./whatif";

/** Most pages of faults that are read; each has 1,000. */
const PAGES_MAX = 10;

/** Where a network is stored. */
export type Source = { cluster: string } | { topology: string };

/** The document of a network, whose parts come one by one. */
async function documentOf(source: Source, signal: AbortSignal): Promise<Uint8Array> {
  const named = "cluster" in source ? { cluster: { cluster: source.cluster } } : { name: source.topology };
  const parts: Uint8Array[] = [];
  for (let [offset, size] = [0, 1]; offset < size; ) {
    const reply = await call(Networks.method.getTopology, { ...named, format: DocumentFormat.JSON, offset: BigInt(offset) }, { signal, seconds: 60 });
    const part = reply.document!.content;
    parts.push(part);
    offset += part.length;
    size = part.length ? Number(reply.documentSizeBytes) : 0;
  }
  return new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
}

/** Faults of a network, of the cluster that it is a part of, and of all machines. */
async function faultsOf(owners: readonly string[], signal: AbortSignal): Promise<KnownFault[]> {
  const filter = [...owners.map((owner) => `topology=${owner}`), "scope=host"].join(" OR ");
  const all: KnownFault[] = [];
  for (let [page, pageToken] = [0, ""]; page < PAGES_MAX; page++) {
    const reply = await call(Faults.method.listFaults, { pageSize: 1000, filter, pageToken }, { signal });
    all.push(...reply.faults);
    pageToken = reply.nextPageToken;
    if (!pageToken) break;
  }
  return all;
}

export function NetworkOf({ source }: { source: Source }) {
  const key = JSON.stringify(source);
  const text = useAsked(`document ${key}`, 0, (signal) => documentOf(source, signal));
  const { model, problem } = useReader(text.data);
  const own = "cluster" in source ? source.cluster : source.topology;
  const owners = model?.cluster && `clusters/${model.cluster}` !== own ? [own, `clusters/${model.cluster}`] : [own];
  const asked = useAsked(`faults of ${owners.join(" ")}`, 3, (signal) => faultsOf(owners, signal));
  const faults = useMemo(() => asked.data?.filter((fault) => fault.topology !== "" || (model !== undefined && hasMachine(model, fault.machines))), [model, asked.data]);
  const broken = useMemo(() => (model && faults ? marked(model, faults) : undefined), [model, faults]);
  return (
    <>
      <Section title="Map">
        {text.error && <Problem error={text.error} />}
        {problem && <Problem error={new CallError(2, problem)} title="The network cannot be drawn" />}
        {model ? <NetworkDrawing model={model} {...(broken ? { broken } : {})}>{broken && <Elsewhere of={broken.elsewhere} />}</NetworkDrawing> : !text.error && !problem && <Loading what="Reading the network" />}
      </Section>
      <Section title="Faults">
        <Shown of={{ ...asked, data: faults }}>{(all) => all.length === 0 ? <Empty>No faults are known here.</Empty> : <FaultsTable faults={all} again={asked.again} />}</Shown>
      </Section>
      <WhatIf source={source} />
    </>
  );
}

/** Faults that are not on the map. */
function Elsewhere({ of }: { of: readonly string[] }) {
  if (of.length === 0) return null;
  return (
    <div class="elsewhere">
      <p>{counted(of.length, "fault")} {of.length === 1 ? "names an element" : "name elements"} that the map does not have:</p>
      <ul>{of.map((text) => <li><code>{text}</code></li>)}</ul>
    </div>
  );
}
