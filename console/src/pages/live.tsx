// Figures of the server over the last minutes, sampled while the page is open.
import { useEffect, useState } from "preact/hooks";
import { useAsked } from "../hooks";
import { Server } from "../messages/canopy/v1/server_pb";
import { Metrics } from "../metrics";
import { Empty, Loading, Problem, Section } from "../parts";
import { call, PERMISSION_DENIED } from "../rpc";
import { Series, type Values } from "../series";
import { bytes, count, seconds } from "../words";

const [EVERY_S, SAMPLES_MAX] = [2, 61];
/** Lines are drawn wider until there are more samples than this. */
const SAMPLES_MIN = 16;
const OVER = "two minutes";
/** Quantiles are of the last minute: most servers answer a few requests a minute. */
const WINDOW = 30;
/** Most outcomes with a line of their own. */
const OUTCOMES_MAX = 5;

const REQUESTS = "canopy_plan_requests_total";
const LATENCY = "canopy_plan_latency_seconds";

/** The server at one moment. */
interface Sample {
  metrics: Metrics;
  waiting: number;
  cacheBytes: number;
}

/** Samples of the server; a restart begins anew. */
function useSamples(): { samples: readonly Sample[]; error: ReturnType<typeof useAsked>["error"] } {
  const asked = useAsked("metrics", EVERY_S, async (signal): Promise<Sample> => {
    const [{ text }, { counts }] = await Promise.all([
      call(Server.method.getMetrics, { prefixes: [REQUESTS, LATENCY] }, { signal }),
      call(Server.method.getStatus, {}, { signal }),
    ]);
    return { metrics: new Metrics(text, performance.now()), waiting: Number(counts?.waiting ?? 0), cacheBytes: Number(counts?.planBytes ?? 0) };
  });
  const [samples, setSamples] = useState<readonly Sample[]>([]);
  const latest = asked.data;
  useEffect(() => {
    if (!latest) return;
    setSamples((before) => {
      const last = before[before.length - 1];
      const isRestarted = last !== undefined && [REQUESTS, `${LATENCY}_count`].some((name) => latest.metrics.sum(name) < last.metrics.sum(name));
      return isRestarted ? [latest] : [...before.slice(1 - SAMPLES_MAX), latest];
    });
  }, [latest]);
  return { samples, error: asked.error };
}

export function Live() {
  const { samples, error } = useSamples();
  const latest = samples[samples.length - 1];
  if (error?.code === PERMISSION_DENIED) return <Section title="Last two minutes"><Empty>You may not read metrics. The role viewer may.</Empty></Section>;
  return (
    <Section title="Last two minutes" aside={<span class="hint">since you opened this page, every {EVERY_S} s</span>}>
      {error && latest && <p class="hint">The server does not answer; these values are from before.</p>}
      {error && !latest && <Problem error={error} />}
      {!latest ? !error && <Loading /> : <Lines samples={samples} latest={latest} />}
    </Section>
  );
}

function Lines({ samples, latest: { metrics } }: { samples: readonly Sample[]; latest: Sample }) {
  const outcomes = metrics.labelsOf(REQUESTS, "outcome").slice(0, OUTCOMES_MAX);
  // The first sample has nothing before it.
  const later = samples.slice(1).map((sample) => sample.metrics);
  const earlier = (index: number) => samples[Math.max(0, index)]!.metrics;
  const rates = (outcome: string): Values => later.map((now, index) => now.rate(earlier(index), REQUESTS, { outcome }));
  const quantiles = (part: number): Values => later.map((now, index) => now.quantile(earlier(index + 1 - WINDOW), LATENCY, part));
  const common = { over: OVER, places: Math.max(SAMPLES_MIN, samples.length) };
  const rate = (value: number) => `${value > 0 && value < 10 ? value.toFixed(1) : count(Math.round(value))} /s`;
  const time = (value: number) => (value < 0.01 ? `${(value * 1000).toFixed(value < 0.001 ? 2 : 1)} ms` : seconds(value));
  return (
    <div class="all-series">
      {(outcomes.length ? outcomes : ["ok"]).map((outcome) => <Series key={outcome} {...common} label={`Requests for plans: ${outcome.replace(/_/g, " ").toLowerCase()}`} values={rates(outcome)} show={rate} />)}
      <Series {...common} label="Time to a plan, p50" values={quantiles(0.5)} show={time} />
      <Series {...common} label="Time to a plan, p99" values={quantiles(0.99)} show={time} />
      <Series {...common} label="Plans in the cache" values={samples.map((sample) => sample.cacheBytes)} show={bytes} />
      <Series {...common} label="Waiting jobs" values={samples.map((sample) => sample.waiting)} show={count} ceiling={1} />
    </div>
  );
}
