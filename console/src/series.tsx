// A line of the latest values, with what it shows in words.

/** `undefined` is a gap in the line. */
export type Values = readonly (number | undefined)[];

const [WIDTH, HEIGHT] = [200, 40];

/** Sections of the line without gaps, as points. */
function sectionsOf(values: Values, most: number, places: number): string[] {
  const sections: string[][] = [];
  let isOpen = false;
  values.forEach((value, index) => {
    if (value === undefined) {
      isOpen = false;
      return;
    }
    // The latest value is at the right end.
    const x = ((places - values.length + index) / Math.max(1, places - 1)) * WIDTH;
    if (!isOpen) sections.push([]);
    isOpen = true;
    sections[sections.length - 1]!.push(`${x.toFixed(1)},${(HEIGHT - 2 - (value / most) * (HEIGHT - 6)).toFixed(1)}`);
  });
  // A single point is a short line.
  return sections.map((points) => (points.length === 1 ? `${points[0]} ${points[0]}` : points.join(" ")));
}

/** A small drawing of values at equal distances; `places`: how many there will be, `over`: the time that they span. */
export function Series({ label, values, show, over, places, ceiling }: {
  label: string;
  values: Values;
  show: (value: number) => string;
  over: string;
  places: number;
  /** The value at the upper edge, if the largest one is lower. */
  ceiling?: number;
}) {
  const known = values.filter((value) => value !== undefined);
  const latest = values[values.length - 1];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const now = latest === undefined ? "–" : show(latest);
  const spoken = known.length === 0 ? `${label}: no values in the last ${over}` : `${label}, last ${over}: ${latest === undefined ? "nothing" : now} now, least ${show(least)}, most ${show(most)}`;
  return (
    <div class="series">
      <span class="label" aria-hidden="true">{label}</span>
      <span class="value" aria-hidden="true">{now}</span>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={spoken} preserveAspectRatio="none">
        <line class="axis-line" x1="0" x2={WIDTH} y1={HEIGHT - 1} y2={HEIGHT - 1} />
        {sectionsOf(values, Math.max(ceiling ?? 0, most, Number.MIN_VALUE), places).map((points) => <polyline points={points} vector-effect="non-scaling-stroke" />)}
      </svg>
      <span class="note" aria-hidden="true">{known.length === 0 ? "no values yet" : show(least) === show(most) ? `${show(most)} throughout` : `${show(least)} to ${show(most)}`}</span>
    </div>
  );
}
