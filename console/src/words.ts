// Numbers, times and names as people read them.
import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { type ErrorStatus, OperationState, Priority } from "./messages/canopy/v1/operations_pb";
import { Collective, type CollectiveSpec, OutputFormat } from "./messages/canopy/v1/plan_pb";
import { type Fault } from "./messages/canopy/v1/topology_pb";

/** A number as messages have it, as its text, or as a float; undefined if it is unset. */
type Numeral = { exact: string } | string | number | undefined;

/** A fraction as a float, for display; the exact text is kept beside it. */
export function fraction(value: Numeral): number {
  if (typeof value === "number") return value;
  const text = typeof value === "string" ? value : value?.exact;
  if (!text) return NaN;
  const [numerator, denominator] = text.split("/");
  return Number(numerator) / Number(denominator ?? "1");
}

function digits(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A rate in bytes per second. */
export function rate(value: Numeral): string {
  const number = fraction(value);
  if (!Number.isFinite(number)) return "–";
  const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
  const step = number <= 0 ? 0 : Math.min(4, Math.floor(Math.log10(number) / 3));
  return `${digits(number / 1000 ** step)} ${units[step]}`;
}

/** A rate with all its digits, for tooltips. */
export function exactRate(value: { exact: string } | undefined): string {
  return value ? `exactly ${value.exact} bytes per second` : "";
}

export function percent(value: Numeral): string {
  const number = fraction(value);
  if (!Number.isFinite(number)) return "–";
  if (number === 1) return "100 %";
  // Nothing is rounded up to the optimum.
  return `${(Math.floor(number * 1000) / 10).toFixed(1)} %`;
}

export function bytes(value: bigint | number): string {
  const number = Number(value);
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = number < 1 ? 0 : Math.min(4, Math.floor(Math.log2(number) / 10));
  return step === 0 ? `${number} B` : `${digits(number / 1024 ** step)} ${units[step]}`;
}

export function count(value: bigint | number): string {
  return Number(value).toLocaleString("en-GB");
}

/** `1 plan`, `2 plans`. */
export function counted(value: bigint | number, word: string): string {
  return `${count(value)} ${Number(value) === 1 ? word : word.endsWith("y") ? `${word.slice(0, -1)}ies` : `${word}s`}`;
}

export function seconds(value: number): string {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const parts = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]] as const;
  const first = parts.findIndex(([size]) => whole >= size);
  const [size, unit] = parts[first]!;
  const next = parts[first + 1];
  const rest = next ? Math.floor((whole % size) / next[0]) : 0;
  return `${Math.floor(whole / size)} ${unit}${rest && next ? ` ${rest} ${next[1]}` : ""}`;
}

export function lasting(duration: Duration | undefined): string {
  return duration ? seconds(Number(duration.seconds) + duration.nanos / 1e9) : "–";
}

export function millis(time: Timestamp | undefined): number | undefined {
  return time ? Number(time.seconds) * 1000 + time.nanos / 1e6 : undefined;
}

export function ago(time: Timestamp | undefined): string {
  const at = millis(time);
  if (at === undefined) return "–";
  const past = (Date.now() - at) / 1000;
  return past < 0 ? `in ${seconds(-past)}` : past < 1 ? "now" : `${seconds(past)} ago`;
}

export function clock(time: Timestamp | undefined): string {
  const at = millis(time);
  return at === undefined ? "" : new Date(at).toISOString().replace("T", " ").slice(0, 19) + " UTC";
}

function dashed(name: string | undefined): string {
  return (name ?? "unknown").toLowerCase().replace(/_/g, "-");
}

export function collective(spec: CollectiveSpec | undefined): string {
  if (!spec) return "–";
  const name = dashed(Collective[spec.kind]);
  return spec.root === undefined ? name : `${name} from ${spec.root}`;
}

export function format(value: OutputFormat): string {
  return dashed(OutputFormat[value]);
}

export function priority(value: Priority): string {
  return dashed(Priority[value]);
}

export function state(value: OperationState): string {
  return dashed(OperationState[value]);
}

/** The part of a name after its folder. */
export function bare(name: string): string {
  return name.slice(name.indexOf("/") + 1);
}

/** The first digits of an id. */
export function short(name: string): string {
  return bare(name).slice(0, 12);
}

/** An element that is broken or slow, as `canopy faults` writes it. */
export function element(fault: Fault | undefined): string {
  const target = fault?.target;
  const device = (at: { node: string; host: string; index: number } | undefined) =>
    at?.node ? at.node : `${at?.host}:${at?.index}`;
  switch (target?.case) {
    case "link":
      return `link:${target.value.from}${target.value.oneWay ? ">" : "="}${target.value.to}`;
    case "nic":
      return `nic:${device(target.value.device)}${target.value.port ? `:${target.value.port}` : ""}`;
    case "device":
      return `gpu:${device(target.value)}`;
    case "host":
      return `host:${target.value}`;
    case "node":
      return `node:${target.value}`;
    case "switchName":
      return `switch:${target.value}`;
    case "plane":
      return `plane:${target.value}`;
    case "switchFeature":
      return `switch:${target.value.switchName}${target.value.multicast ? " (multicast)" : ""}${target.value.aggregate ? " (aggregation)" : ""}`;
    default:
      return "unknown element";
  }
}

/** The stable reason of a failure within an answer: the first field of its `google.rpc.ErrorInfo`. */
export function reasonOf(error: ErrorStatus | undefined): string {
  const info = error?.details.find((detail) => detail.typeUrl.endsWith("google.rpc.ErrorInfo"))?.value;
  return info && info[0] === 0x0a ? new TextDecoder().decode(info.slice(2, 2 + info[1]!)) : "";
}

export function remaining(fault: Fault | undefined): string {
  const left = fault?.remaining;
  return left ? `${percent(left)} left` : "broken";
}

/** Names in words: `a`, `a and b`, `a, b and 5 more`. */
export function names(all: readonly string[], most = 6): string {
  if (all.length <= 1) return all.join("");
  if (all.length <= most) return `${all.slice(0, -1).join(", ")} and ${all[all.length - 1]}`;
  return `${all.slice(0, most).join(", ")} and ${all.length - most} more`;
}
