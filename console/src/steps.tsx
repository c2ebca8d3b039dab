// The drawing of what ranks send in steps.
import { useMemo } from "preact/hooks";
import type { Model } from "./model";
import { Empty, Table } from "./parts";
import { counted } from "./words";

/** Most rows of the drawing: beyond it, ranks share a row. */
const ROWS_MAX = 64;

/** Which rank sends how much in which step. */
export function StepsDrawing({ model }: { model: Model }) {
  const ranks = model.steps[0]?.length ?? 0;
  const share = Math.max(1, Math.ceil(ranks / ROWS_MAX));
  const rowCount = Math.ceil(ranks / share);
  const columns = Math.min(model.steps.length, 200);
  const { cells, totals, most } = useMemo(() => {
    const cells = Array.from({ length: rowCount }, () => new Array<number>(columns).fill(0));
    const totals = model.steps.map((step) => step.reduce((a, b) => a + b, 0));
    for (let step = 0; step < columns; step++) model.steps[step]!.forEach((amount, rank) => (cells[Math.floor(rank / share)]![step]! += amount));
    return { cells, totals, most: Math.max(1, ...cells.flat()) };
  }, [model]);
  if (ranks === 0) return <Empty>The plan sends nothing.</Empty>;
  const [width, left, height] = [640, 60, Math.max(6, Math.min(18, 640 / rowCount))];
  const cell = (width - left) / columns;
  const what = model.shape === "steps" ? "step" : "depth";
  return (
    <div class="drawing">
      <svg class="steps" viewBox={`0 0 ${width} ${rowCount * height + 24}`} role="img" aria-label={`What each rank sends by ${what}: ${counted(model.steps.length, what)}`}>
        {cells.map((row, at) => (
          <g>
            {(at % Math.ceil(12 / height) === 0) && <text class="axis" x={left - 6} y={at * height + height / 2 + 3}>{share > 1 ? `${at * share}–${Math.min(ranks, (at + 1) * share) - 1}` : at}</text>}
            {row.map((amount, step) => amount > 0 && <rect class="cell" x={left + step * cell} y={at * height} width={Math.max(1, cell - 1)} height={height - 1} fill-opacity={0.15 + (0.85 * amount) / most}><title>{`rank ${at * share}, ${what} ${step}: ${amount} chunks`}</title></rect>)}
          </g>
        ))}
        {Array.from({ length: columns }, (_, step) => (columns <= 20 || step % Math.ceil(columns / 20) === 0) && <text class="axis under" x={left + (step + 0.5) * cell} y={rowCount * height + 14}>{step}</text>)}
      </svg>
      <Table label={`Chunks sent by ${what}`} rows={totals.slice(0, 200).map((total, step) => ({ step, total }))} keyOf={({ step }) => String(step)}
        columns={[
          { head: what === "step" ? "Step" : "Depth", cell: ({ step }) => step, number: true },
          { head: "Chunks sent", cell: ({ total }) => total.toLocaleString("en-GB"), number: true },
          { head: "Ranks that send", cell: ({ step }) => model.steps[step]!.filter((amount) => amount > 0).length, number: true },
        ]} />
    </div>
  );
}
