// One plan: what limits it, what it reaches, where it comes from, and drawings of it.
import { useContext, useState } from "preact/hooks";
import { Actions } from "../actions";
import { link, useAsked, type Route } from "../hooks";
import { type Artifact, OutputFormat, PartitionParts, type Plan, type PlanExplanation } from "../messages/canopy/v1/plan_pb";
import { Plans, type PlanSummary } from "../messages/canopy/v1/plans_pb";
import { Action, Badge, Empty, Facts, Figure, Loading, Problem, Section, Shown, Table, Tabs } from "../parts";
import { useReader } from "../reading";
import { call, CallError, requestId, stream } from "../rpc";
import { StepsDrawing } from "../steps";
import { TreeDrawing } from "../tree";
import { ago, bare, bytes, clock, collective, count, counted, exactRate, format, lasting, names, percent, rate, short } from "../words";
import { PlanLinks } from "./planlinks";
import { Simulated } from "./simulated";

const VIEWS = [["", "Summary"], ["links", "Links"], ["trees", "Trees"], ["steps", "Steps"], ["simulated", "Simulated"]] as const;
/** Larger files are read when somebody asks for it. */
const READ_AT_ONCE = 8 << 20;

export function PlanPage({ name, route }: { name: string; route: Route }) {
  const asked = useAsked(name, 0, async (signal) => {
    const [explanation, summary] = await Promise.all([
      call(Plans.method.explainPlan, { name }, { signal }),
      call(Plans.method.getPlanSummary, { name }, { signal }).catch(() => undefined),
    ]);
    return { explanation, summary };
  });
  const view = route.query.get("view") ?? "";
  const tabs = VIEWS.map(([key, text]) => [key, text, link(name, { view: key })] as const);
  return (
    <Shown of={asked}>
      {({ explanation, summary }) => {
        const plan = explanation.plan!;
        return (
          <>
            <p class="subject"><code>{plan.name}</code> {summary?.pinned && <Badge tone="good">pinned</Badge>}{plan.supersededBy && <> replaced by <a href={`#/${plan.supersededBy}`}><code>{short(plan.supersededBy)}</code></a></>}</p>
            <Tabs label="Views of the plan" of={tabs} current={view} />
            {view === "" ? <Summary plan={plan} explanation={explanation} summary={summary} again={asked.again} /> : view === "simulated" ? <Simulated plan={plan} route={route} /> : <Drawn plan={plan} view={view} route={route} />}
          </>
        );
      }}
    </Shown>
  );
}

function Summary({ plan, explanation, summary, again }: { plan: Plan; explanation: PlanExplanation; summary: PlanSummary | undefined; again: () => void }) {
  const quality = plan.quality!;
  return (
    <>
      <div class="figures">
        <Figure label="Reaches" value={<span title={exactRate(quality.achieved)}>{rate(quality.achieved)}</span>} note={`algbw of ${collective(plan.collective)}`} />
        <Figure label="Bound" value={<span title={exactRate(quality.bound)}>{rate(quality.bound)}</span>} note={quality.tight ? "known to be reachable" : "not known to be reachable"} />
        <Figure label="Of optimal" value={<span title={quality.optimality?.exact}>{percent(quality.optimality)}</span>} tone={quality.optimality?.exact === "1/1" ? "good" : ""} note={quality.optimality?.exact === "1/1" ? "proven optimal" : `${percent(explanation.gap)} below the bound`} />
        <Figure label="Ranks" value={count(plan.topology?.ranks ?? 0)} note={plan.network || undefined} />
      </div>
      <Section title="What limits it">
        <p class="limit-words" title={explanation.limit}>{inWords(explanation.limit)}</p>
        <Limit plan={plan} />
      </Section>
      <Section title="Schedule">
        <Facts of={[
          ["Collective", collective(plan.collective)],
          ["Algorithm", plan.algorithm],
          ["Network", plan.network || plan.family],
          ["Without", plan.without || undefined],
          ["Trees, paths or sends", count(plan.trees)],
          ["Chunks of each share", count(plan.chunksPerRank)],
          ["Steps or greatest depth", count(plan.steps)],
          ["Most links on a path", plan.reach ? String(plan.reach.hopsMax) : undefined],
          ["Sizes", `${bytes(plan.validFor?.sizeBytesMin ?? 0n)} to ${bytes(plan.validFor?.sizeBytesMax ?? 0n)}${plan.validFor?.inPlace ? ", in place" : ""}`],
          ["Machines", names([...new Set(plan.rankMap?.slots.map((slot) => slot.node))])],
          ["Checks passed", plan.checked.join(", ")],
        ]} />
      </Section>
      <Files plan={plan} explanation={explanation} />
      <Origin plan={plan} summary={summary} />
      {summary && <Changes name={plan.name} pinned={summary.pinned} again={again} />}
    </>
  );
}

/** The server's sentence, with rates as people read them. */
function inWords(limit: string): string {
  const text = limit.replace(/(\d+(?:\/\d+)?) bytes\/s/g, (_, exact: string) => rate(exact));
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;
}

/** The limiting set in words. */
function Limit({ plan }: { plan: Plan }) {
  const proof = plan.quality?.certificate?.kind;
  switch (proof?.case) {
    case "cut": {
      const { set, direction, capacity } = proof.value;
      return <Facts of={[["Set", `${counted(set?.ranks.length ?? 0, "rank")} of ${count(plan.topology?.ranks ?? 0)}: ${names(set?.nodes ?? [])}`], ["Links that count", direction === 1 ? "those that leave the set" : "those that enter the set"], ["Their capacity", rate(capacity)]]} />;
    }
    case "partition":
      if (proof.value.sets.length === 0) {
        const parts = proof.value.parts === PartitionParts.RANKS ? "rank" : "box";
        return <Facts of={[["Sets", `each ${parts} by itself, ${count(proof.value.setCount)}`], ["Capacity that leaves them", rate(proof.value.capacity)]]} />;
      }
      return <Facts of={[["Sets", count(proof.value.sets.length)], ["First set", names(proof.value.sets[0]?.nodes ?? [], 12)], ["Capacity that leaves them", rate(proof.value.capacity)]]} />;
    case "sum":
      return <Facts of={[["Sets", count(proof.value.terms.length)], ["Switches that lose what enters them", names(proof.value.potentials.map(({ node }) => node), 12)], ["Capacity that counts", rate(proof.value.capacity)]]} />;
    case "lpDual":
      return <Facts of={[["Bottleneck links", count(proof.value.lengths.length)], ["First of them", names(proof.value.lengths.slice(0, 8).map(({ from, to }) => `${from} → ${to}`), 8)]]} />;
    default:
      return null;
  }
}

function Files({ plan, explanation }: { plan: Plan; explanation: PlanExplanation }) {
  const [problem, setProblem] = useState<CallError>();
  const save = async (artifact: Artifact) => {
    setProblem(undefined);
    try {
      const content = await fetchFile(plan.name, artifact);
      const address = URL.createObjectURL(new Blob([content as BlobPart]));
      const anchor = Object.assign(document.createElement("a"), { href: address, download: `${short(plan.name)}.${format(artifact.format).endsWith("xml") ? "xml" : "json"}` });
      anchor.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    } catch (error) {
      setProblem(error instanceof CallError ? error : new CallError(2, String(error)));
    }
  };
  return (
    <Section title="Files">
      {problem && <Problem error={problem} />}
      <Table label="Files" rows={explanation.artifacts} keyOf={({ artifact }) => artifact!.sha256}
        columns={[
          { head: "Format", cell: ({ artifact }) => format(artifact!.format) },
          { head: "Profile", cell: ({ artifact }) => artifact!.profile || "–" },
          { head: "Size", cell: ({ artifact }) => bytes(artifact!.sizeBytes), number: true },
          { head: "SHA-256", cell: ({ artifact }) => <code title={artifact!.sha256}>{artifact!.sha256.slice(0, 16)}</code> },
          { head: "Needs", cell: ({ msccl }) => msccl ? `${counted(msccl.channels, "channel")}, ${counted(msccl.threadBlocksMax, "thread block")}` : "–" },
          { head: "Content", cell: ({ artifact }) => <button type="button" onClick={() => save(artifact!)}>Save<span class="hidden"> {format(artifact!.format)}</span></button> },
        ]} />
    </Section>
  );
}

function Origin({ plan, summary }: { plan: Plan; summary: PlanSummary | undefined }) {
  const made = plan.provenance!;
  return (
    <Section title="Origin and use">
      <Facts of={[
        ["Requested algorithm", made.algorithmRequested],
        ["Made by", `canopy ${made.version}`],
        ["Planning took", lasting(made.wallTime)],
        ["Repaired from", made.repairedFrom && <a href={`#/${made.repairedFrom}`}><code>{short(made.repairedFrom)}</code></a>],
        ["Tenant", made.tenant],
        ["Stored", summary && <span title={clock(summary.createTime)}>{ago(summary.createTime)}</span>],
        ["Last used", summary && <span title={clock(summary.lastUseTime)}>{ago(summary.lastUseTime)}</span>],
        ["Uses", summary && count(summary.hits)],
        ["Size in the cache", summary && bytes(summary.sizeBytes)],
        ["Topology hash", plan.topology && <code>{plan.topology.hash.slice(0, 32)}</code>],
      ]} />
      {made.rejected.length > 0 && <Table label="Rejected schedules" rows={made.rejected} keyOf={(one) => one.algorithm + one.problem}
        columns={[{ head: "Rejected", cell: (one) => one.algorithm }, { head: "Check", cell: (one) => one.reason }, { head: "Problem", cell: (one) => one.problem }]} />}
    </Section>
  );
}

function Changes({ name, pinned, again }: { name: string; pinned: boolean; again: () => void }) {
  if (!useContext(Actions)) return null;
  const pin = async () => {
    await call(pinned ? Plans.method.unpinPlan : Plans.method.pinPlan, { name, requestId: requestId() });
    return pinned ? "The plan can be evicted again." : "Nothing evicts the plan.";
  };
  const evict = async () => {
    const { evicted, pinned: kept } = await call(Plans.method.evictPlans, { names: [name], requestId: requestId() });
    if (kept) throw new CallError(9, "the plan is pinned; unpin it first");
    location.hash = "#/plans";
    return evicted ? "The plan has left the cache." : "The plan was not in the cache.";
  };
  return (
    <Section title="Actions">
      <div class="buttons">
        <Action label={pinned ? "Unpin the plan" : "Pin the plan"} confirm={pinned ? "Unpin it" : "Pin it"} act={pin} onDone={again}
          question={pinned ? "The cache may evict the plan when room is needed." : "The plan stays in the cache until it is unpinned."} />
        <Action danger label="Evict the plan" confirm="Evict it" act={evict}
          question="The plan and the schedules it was made from leave the cache. The next request for it searches again." />
      </div>
    </Section>
  );
}

/** The content of a file. */
async function fetchFile(plan: string, { format: kind, profile, instances, sizeBytes }: Artifact, signal?: AbortSignal): Promise<Uint8Array> {
  const content = new Uint8Array(Number(sizeBytes));
  for await (const { event } of stream(Plans.method.fetchPlanFile, { name: plan, format: kind, profile, instances }, { seconds: 300, ...(signal ? { signal } : {}) })) {
    if (event.case === "content") content.set(event.value.data, Number(event.value.offset));
  }
  return content;
}

/** Drawings, from the plan's own file. */
function Drawn({ plan, view, route }: { plan: Plan; view: string; route: Route }) {
  const file = plan.artifacts.find((one) => one.format === OutputFormat.JSON);
  const [agreed, setAgreed] = useState(false);
  if (!file) return <Empty>Drawings need the plan's JSON file. Ask for the plan again with <code>--format json</code>.</Empty>;
  if (Number(file.sizeBytes) > READ_AT_ONCE && !agreed) {
    return <Empty>The plan file has {bytes(file.sizeBytes)}. <button type="button" onClick={() => setAgreed(true)}>Read it</button></Empty>;
  }
  return <FromFile id={plan.name} file={file} view={view} route={route} />;
}

function FromFile({ id, file, view, route }: { id: string; file: Artifact; view: string; route: Route }) {
  const asked = useAsked(`file ${id}`, 0, (signal) => fetchFile(id, file, signal));
  const reading = useReader(asked.data);
  const { model, problem } = reading;
  if (asked.error) return <Problem error={asked.error} />;
  if (problem) return <Problem error={new CallError(2, problem)} title="The plan file cannot be drawn" />;
  if (!model) return <Loading what={`Reading ${bytes(file.sizeBytes)} of ${bare(id).slice(0, 12)}`} />;
  if (view === "trees") return <TreeDrawing model={model} reading={reading} route={route} />;
  if (view === "steps") return <StepsDrawing model={model} />;
  return <PlanLinks model={model} reading={reading} route={route} />;
}
