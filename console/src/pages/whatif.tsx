// Ranks single faults of a network by the bound that each leaves.
import { useEffect, useState } from "preact/hooks";
import { Analysis, FaultKind, type WeighedFault, WeighedOutcome, type WeighFaultsStarted } from "../messages/canopy/v1/analysis_pb";
import { Collective } from "../messages/canopy/v1/plan_pb";
import { Bar, Choice, Problem, Section, Table } from "../parts";
import { CallError, stream } from "../rpc";
import { counted, element, fraction, percent, rate } from "../words";
import type { Source } from "./network";

const COLLECTIVES: [string, string][] = Object.entries(Collective).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]) => [String(value), name.toLowerCase().replace(/_/g, "-")]);
const KINDS: [string, string][] = [["", "every kind"], ...Object.entries(FaultKind).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]): [string, string] => [String(value), name.toLowerCase().replace(/_/g, " ")])];

interface Weighing {
  started?: WeighFaultsStarted;
  weighed: number;
  groups: WeighedFault[];
  error?: CallError;
  isDone?: boolean;
}

export function WhatIf({ source }: { source: Source }) {
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
    const topology = "cluster" in source ? { source: { case: "cluster" as const, value: { cluster: source.cluster } } } : { source: { case: "name" as const, value: source.topology } };
    const request = { topology, collective: { kind: Number(collective) }, kinds: kind ? [Number(kind)] : [] };
    try {
      for await (const { event } of stream(Analysis.method.weighFaults, request, { signal: own.signal, seconds: 3000 })) {
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
          <p>Without another fault, the bound is {rate(weighing.started?.bound)}.</p>
          <Table label="Single faults, most harmful first" rows={weighing.groups.slice(0, 500)} keyOf={(group) => element(group.faults[0])}
            columns={[
              { head: "If this fails", cell: (group) => <code>{element(group.faults[0])}</code> },
              { head: "or any of", cell: (group) => group.alike > 1 ? <span title={group.faults.map(element).slice(0, 40).join(", ")}>{counted(group.alike - 1, "equal fault")}</span> : "–", number: true },
              { head: "Bound that remains", cell: (group) => outcome(group) },
              { head: "Of the present bound", cell: (group) => group.outcome === WeighedOutcome.BOUNDED ? <Bar value={fraction(group.ratio)} label={percent(group.ratio)} /> : "0 %" },
            ]} />
        </>
      )}
    </Section>
  );
}

function outcome(group: WeighedFault): string {
  switch (group.outcome) {
    case WeighedOutcome.BOUNDED:
      return rate(group.bound);
    case WeighedOutcome.DISCONNECTED:
      return `network split in ${group.components}`;
    case WeighedOutcome.TOO_FEW_RANKS:
      return "fewer than two ranks";
    default:
      return "root lost";
  }
}
