// Two plans side by side.
import { amend, useAsked, type Route } from "../hooks";
import { type Plan, type PlanExplanation } from "../messages/canopy/v1/plan_pb";
import { Plans, type PlanSummary } from "../messages/canopy/v1/plans_pb";
import { Empty, Field, Shown } from "../parts";
import { call } from "../rpc";
import { ago, bytes, collective, count, format, fraction, lasting, percent, rate, short } from "../words";

type Side = { plan: Plan; explanation: PlanExplanation; summary: PlanSummary | undefined };

const ROWS: [string, (side: Side) => string][] = [
  ["Collective", ({ plan }) => collective(plan.collective)],
  ["Network", ({ plan }) => plan.network || plan.topology?.hash.slice(0, 12) || "–"],
  ["Without", ({ plan }) => plan.without || "–"],
  ["Topology hash", ({ plan }) => plan.topology?.hash.slice(0, 16) ?? "–"],
  ["Ranks", ({ plan }) => count(plan.topology?.ranks ?? 0)],
  ["Algorithm", ({ plan }) => plan.algorithm],
  ["Reaches", ({ plan }) => rate(plan.quality!.achieved)],
  ["Bound", ({ plan }) => rate(plan.quality!.bound)],
  ["Of optimal", ({ plan }) => percent(plan.quality!.optimality)],
  ["Trees, paths or sends", ({ plan }) => count(plan.trees)],
  ["Chunks of each share", ({ plan }) => count(plan.chunksPerRank)],
  ["Steps or greatest depth", ({ plan }) => count(plan.steps)],
  ["Files", ({ plan }) => plan.artifacts.map((one) => `${format(one.format)} (${bytes(one.sizeBytes)})`).join(", ")],
  ["Planning took", ({ plan }) => lasting(plan.provenance?.wallTime)],
  ["Made by", ({ plan }) => plan.provenance?.version ?? ""],
  ["Uses", ({ summary }) => (summary ? count(summary.hits) : "–")],
  ["Last used", ({ summary }) => ago(summary?.lastUseTime)],
  ["What limits it", ({ explanation }) => explanation.limit],
];

export function ComparePage({ route }: { route: Route }) {
  const ids = ["a", "b"].map((key) => route.query.get(key) ?? "") as [string, string];
  const fields = (
    <div class="filters">
      <Field label="First plan" value={ids[0]} onChange={(value) => amend(route, { a: value.replace("plans/", "") })} />
      <Field label="Second plan" value={ids[1]} onChange={(value) => amend(route, { b: value.replace("plans/", "") })} />
    </div>
  );
  return <>{fields}{ids.every(Boolean) ? <Sides ids={ids} /> : <Empty>Enter the ids of two plans, or choose them in <a href="#/plans">the list</a>.</Empty>}</>;
}

function Sides({ ids }: { ids: [string, string] }) {
  const asked = useAsked(`compare ${ids.join(" ")}`, 0, (signal) =>
    Promise.all(ids.map(async (id): Promise<Side> => {
      const name = `plans/${id}`;
      const [explanation, summary] = await Promise.all([
        call(Plans.method.explainPlan, { name }, { signal }),
        call(Plans.method.getPlanSummary, { name }, { signal }).catch(() => undefined),
      ]);
      return { plan: explanation.plan!, explanation, summary };
    })),
  );
  return (
    <Shown of={asked}>
      {(sides) => {
        const [a, b] = sides as [Side, Side];
        const ratio = fraction(b.plan.quality!.achieved) / fraction(a.plan.quality!.achieved);
        return (
          <>
            <p class="limit-words">{ratio === 1 ? "Both plans reach the same rate." : ratio > 1 ? `The second plan is ${ratio.toFixed(3)} times as fast as the first.` : `The first plan is ${(1 / ratio).toFixed(3)} times as fast as the second.`}</p>
            <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
              <table>
                <thead><tr><th scope="col">Property</th>{sides.map(({ plan }) => <th scope="col"><a href={`#/${plan.name}`}><code>{short(plan.name)}</code></a></th>)}</tr></thead>
                <tbody>{ROWS.map(([head, cell]) => {
                  const [left, right] = [cell(a), cell(b)];
                  return <tr class={left === right ? "" : "differs"}><th scope="row">{head}{left !== right && <span class="hidden"> (differs)</span>}</th><td>{left}</td><td>{right}</td></tr>;
                })}</tbody>
              </table>
            </div>
          </>
        );
      }}
    </Shown>
  );
}
