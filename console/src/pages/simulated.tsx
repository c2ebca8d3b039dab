// A plan in simulation: what it reaches by the size of messages, and when its links are busy.
import { amend, link, useAsked, type Route } from "../hooks";
import { OutputFormat, type Plan } from "../messages/canopy/v1/plan_pb";
import { Plans, type SimulatedSize, type SimulatedTimeline, type SimulatePlanResponse } from "../messages/canopy/v1/plans_pb";
import { Badge, Choice, Empty, Facts, Loading, Section, Shown, Table } from "../parts";
import { call } from "../rpc";
import { bytes, count, counted, exactRate, fraction, percent, rate } from "../words";

/** Longest time for an answer; the server may allow less. */
const SECONDS = 300;
/** The size whose timeline is shown if none is chosen, where it is among the simulated ones. */
const USUAL_SIZE = 16n << 20n;
const [WIDTH, HEIGHT, LEFT, BOTTOM] = [640, 300, 70, 34];
const [ROW, LABEL, TOP] = [14, 190, 6];

export function Simulated({ plan, route }: { plan: Plan; route: Route }) {
  if (!plan.artifacts.some((one) => one.format === OutputFormat.JSON)) {
    return <Empty>Simulation needs the plan's JSON file. Ask for the plan again with <code>--format json</code>.</Empty>;
  }
  return <FromServer name={plan.name} ranks={plan.topology?.ranks ?? 0} route={route} />;
}

function FromServer({ name, ranks, route }: { name: string; ranks: number; route: Route }) {
  const asked = useAsked(`simulated ${name}`, 0, (signal) => call(Plans.method.simulatePlan, { name }, { signal, seconds: SECONDS }));
  const stated = route.query.get("size") ?? "";
  const isSize = /^\d{1,19}$/.test(stated);
  if (!asked.data && !asked.error) return <Loading what={`Simulating ${counted(ranks, "rank")}`} />;
  return (
    <Shown of={asked}>
      {(reply) => {
        const usual = reply.sizes.find((one) => one.sizeBytes === USUAL_SIZE) ?? reply.sizes[reply.sizes.length - 1]!;
        const size = isSize ? BigInt(stated) : usual.sizeBytes;
        return (
          <>
            <Sizes name={name} reply={reply} chosen={size} />
            <Section title="When links are busy">
              {stated && !isSize && <Empty>The size in the address is not a number of bytes; this is {bytes(size)}.</Empty>}
              <SizeChoice sizes={reply.sizes} chosen={size} choose={(value) => amend(route, { size: value })} />
              <Timeline name={name} size={size} />
            </Section>
          </>
        );
      }}
    </Shown>
  );
}

function Sizes({ name, reply, chosen }: { name: string; reply: SimulatePlanResponse; chosen: bigint }) {
  return (
    <Section title="Rate by message size">
      <Curve reply={reply} chosen={chosen} />
      <Facts of={[
        ["Bound", <span title={exactRate(reply.bound)}>{rate(reply.bound)}</span>],
        ["Start-up of a message", time((reply.model?.alphaNs ?? 0n) * 1000n)],
        ["Largest message", bytes(reply.model?.pieceBytes ?? 0n)],
      ]} />
      {reply.warnings.map(({ text }) => <p class="hint">{text}</p>)}
      <Table label="Rates by size" rows={reply.sizes} keyOf={(one) => String(one.sizeBytes)}
        columns={[
          { head: "Size", cell: (one) => <a href={link(name, { view: "simulated", size: String(one.sizeBytes) })}>{bytes(one.sizeBytes)}</a>, number: true },
          { head: "Time", cell: (one) => time(one.timePs), number: true },
          { head: "algbw", cell: (one) => <span title={exactRate(one.algbw)}>{rate(one.algbw)}</span>, number: true },
          { head: "busbw", cell: (one) => <span title={exactRate(one.busbw)}>{rate(one.busbw)}</span>, number: true },
          { head: "Of the bound", cell: (one) => percent(one.ofBound), number: true },
          { head: "Messages", cell: (one) => count(one.messages), number: true },
        ]} />
    </Section>
  );
}

/** algbw over size, with the bound; both axes are logarithmic. */
function Curve({ reply, chosen }: { reply: SimulatePlanResponse; chosen: bigint }) {
  const { sizes } = reply;
  const bound = fraction(reply.bound);
  const rates = sizes.map((one) => fraction(one.algbw));
  const [low, high] = decades([...rates, bound]);
  const places = sizes.map((one) => Math.log2(Number(one.sizeBytes)));
  const [first, last] = [places[0]!, places[places.length - 1]!];
  const x = (place: number) => LEFT + (last > first ? (place - first) / (last - first) : 0.5) * (WIDTH - LEFT - 40);
  const y = (value: number) => HEIGHT - BOTTOM - ((Math.log10(value) - low) / (high - low)) * (HEIGHT - BOTTOM - 16);
  const points = sizes.map((one, at) => ({ one, x: x(places[at]!), y: y(rates[at]!) }));
  const best = sizes[rates.indexOf(Math.max(...rates))]!;
  const label = `algbw over message size: up to ${rate(best.algbw)} at ${bytes(best.sizeBytes)}, ${percent(best.ofBound)} of the bound of ${rate(reply.bound)}`;
  const every = Math.ceil(sizes.length / 10);
  return (
    <div class="drawing">
      <svg class="curve" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
        {Array.from({ length: high - low + 1 }, (_, step) => 10 ** (low + step)).map((value) => (
          <>
            <line class="grid" x1={LEFT} x2={WIDTH - 10} y1={y(value)} y2={y(value)} />
            <text class="axis" x={LEFT - 6} y={y(value) + 4}>{rate(value)}</text>
          </>
        ))}
        {points.map((point, at) => at % every === 0 && <text class="axis under" x={point.x} y={HEIGHT - 14}>{bytes(point.one.sizeBytes)}</text>)}
        <line class="bound" x1={LEFT} x2={WIDTH - 10} y1={y(bound)} y2={y(bound)} />
        <text class="axis" x={WIDTH - 12} y={y(bound) - 5}>bound {rate(reply.bound)}</text>
        <polyline points={points.map((point) => `${point.x},${point.y}`).join(" ")} />
        {points.map(({ one, x, y }) => <circle class={one.sizeBytes === chosen ? "chosen" : ""} cx={x} cy={y} r={4}><title>{`${bytes(one.sizeBytes)}: ${rate(one.algbw)} in ${time(one.timePs)}`}</title></circle>)}
      </svg>
    </div>
  );
}

/** The whole powers of ten around rates. */
function decades(values: readonly number[]): [number, number] {
  const powers = values.filter((value) => value > 0).map(Math.log10);
  const low = Math.floor(Math.min(...powers));
  return [low, Math.max(low + 1, Math.ceil(Math.max(...powers)))];
}

function SizeChoice({ sizes, chosen, choose }: { sizes: readonly SimulatedSize[]; chosen: bigint; choose: (size: string) => void }) {
  const all = sizes.map((one) => one.sizeBytes);
  const listed = all.includes(chosen) ? all : [...all, chosen];
  return <div class="filters"><Choice label="Message size" value={String(chosen)} of={listed.map((size) => [String(size), bytes(size)] as const)} onChange={choose} /></div>;
}

function Timeline({ name, size }: { name: string; size: bigint }) {
  const request = { name, sizesBytes: [size], timelineSizeBytes: size };
  const asked = useAsked(`timeline ${name} ${size}`, 0, (signal) => call(Plans.method.simulatePlan, request, { signal, seconds: SECONDS }));
  return <Shown of={asked}>{({ timeline }) => (timeline?.links.length ? <Rows timeline={timeline} /> : <Empty>The plan sends nothing at this size.</Empty>)}</Shown>;
}

/** A row for each link, with a cell for each part of the time. */
function Rows({ timeline }: { timeline: SimulatedTimeline }) {
  const { links, parts, timePs } = timeline;
  const cell = (WIDTH - LABEL) / parts;
  const label = `When the ${counted(links.length, "busiest link")} of ${count(timeline.linksUsed)} are busy, over ${time(timePs)}`;
  const shorter = (name: string) => (name.length > 14 ? `${name.slice(0, 13)}…` : name);
  return (
    <div class="drawing">
      <svg class="timeline" viewBox={`0 0 ${WIDTH} ${TOP + links.length * ROW + 24}`} role="img" aria-label={label}>
        {links.map((one, row) => (
          <g>
            <title>{`${one.from} → ${one.to}: busy for ${time(one.busyPs)}`}</title>
            <text class={one.critical ? "axis critical" : "axis"} x={LABEL - 6} y={TOP + row * ROW + 10}>{shorter(one.from)} → {shorter(one.to)}</text>
            {one.busy.map((part, at) => part > 0 && <rect class="cell" x={LABEL + at * cell} y={TOP + row * ROW} width={cell} height={ROW - 2} fill-opacity={0.1 + (0.9 * part) / 1000} />)}
          </g>
        ))}
        {[0n, 1n, 2n, 3n, 4n].map((quarter) => <text class={quarter === 4n ? "axis" : "axis under"} x={LABEL + (Number(quarter) / 4) * (WIDTH - LABEL)} y={TOP + links.length * ROW + 16}>{time((timePs * quarter) / 4n)}</text>)}
      </svg>
      <Table label="Busiest links" rows={links} keyOf={(one) => `${one.from} ${one.to}`}
        columns={[
          { head: "From", cell: (one) => one.from },
          { head: "To", cell: (one) => one.to },
          { head: "Critical path", cell: (one) => one.critical && <Badge tone="warn">on it</Badge> },
          { head: "Carries", cell: (one) => bytes(one.bytes), number: true },
          { head: "Busy", cell: (one) => time(one.busyPs), number: true },
          { head: "Of the time", cell: (one) => percent(Number(one.busyPs) / Math.max(1, Number(timePs))), number: true },
        ]} />
    </div>
  );
}

/** A time in picoseconds. */
function time(ps: bigint): string {
  const units = ["ps", "ns", "µs", "ms", "s"];
  const value = Number(ps);
  const step = value < 1 ? 0 : Math.min(4, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** step;
  return `${step === 0 ? scaled : scaled >= 100 ? scaled.toFixed(0) : scaled >= 10 ? scaled.toFixed(1) : scaled.toFixed(2)} ${units[step]}`;
}
