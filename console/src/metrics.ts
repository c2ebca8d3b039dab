// Metrics in the text format of Prometheus, as far as the console shows them.

interface Sample {
  name: string;
  labels: ReadonlyMap<string, string>;
  value: number;
}

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /(\w+)="((?:[^"\\]|\\.)*)",?/g;

/** The metrics of a server at one moment. */
export class Metrics {
  private readonly samples: Sample[];

  /** Reads a page; lines of other forms are passed over. */
  constructor(page: string, readonly at: number) {
    this.samples = page.split("\n").flatMap((line) => {
      const [, name, labels, value] = line.startsWith("#") ? [] : (LINE.exec(line) ?? []);
      if (!name) return [];
      return [{ name, labels: new Map([...(labels ?? "").matchAll(LABEL)].map(([, key, text]): [string, string] => [key!, text!])), value: Number(value) }];
    });
  }

  private of(name: string, labels: Record<string, string>): Sample[] {
    return this.samples.filter((sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels.get(key) === value));
  }

  /** The sum of all samples with these labels; 0 if there are none. */
  sum(name: string, labels: Record<string, string> = {}): number {
    return this.of(name, labels).reduce((sum, { value }) => sum + value, 0);
  }

  /** Values of a label, in order. */
  labelsOf(name: string, label: string): string[] {
    return [...new Set(this.of(name, {}).flatMap(({ labels }) => labels.get(label) ?? []))].sort();
  }

  /** How much a counter grew in a second. */
  rate(before: Metrics, name: string, labels: Record<string, string> = {}): number {
    return Math.max(0, this.sum(name, labels) - before.sum(name, labels)) / Math.max(0.001, (this.at - before.at) / 1000);
  }

  /** A quantile of what a histogram took up since an earlier moment, interpolated in its bucket; `undefined` if that is nothing. */
  quantile(before: Metrics, name: string, part: number): number | undefined {
    const then = before.buckets(name);
    const grown = [...this.buckets(name)].map(([bound, value]): [number, number] => [bound, Math.max(0, value - (then.get(bound) ?? 0))]).sort(([a], [b]) => a - b);
    const total = grown[grown.length - 1]?.[1] ?? 0;
    if (total === 0) return undefined;
    const wanted = part * total;
    const place = grown.findIndex(([, value]) => value >= wanted);
    const [bound, value] = grown[place]!;
    const [lower, below] = grown[place - 1] ?? [0, 0];
    // Above the last bound nothing is known.
    if (bound === Infinity) return lower;
    return lower + (bound - lower) * (value > below ? (wanted - below) / (value - below) : 1);
  }

  /** How much was at most each bound, over all labels. */
  private buckets(name: string): Map<number, number> {
    const found = new Map<number, number>();
    for (const { labels, value } of this.of(`${name}_bucket`, {})) {
      const bound = labels.get("le") === "+Inf" ? Infinity : Number(labels.get("le"));
      found.set(bound, (found.get(bound) ?? 0) + value);
    }
    return found;
  }
}
